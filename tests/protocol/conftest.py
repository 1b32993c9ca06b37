"""The parameters of the codec's tests.

A test that asks for `message` and `version` runs once for every message in every version it has; one that asks for
`api_message`, once for every version of every request and response.
"""

from __future__ import annotations

import pytest

from kwire.protocol.codec.build import all_messages, api_messages


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, messages in (("message", all_messages), ("api_message", api_messages)):
        if {name, "version"} <= set(metafunc.fixturenames):
            pairs = [
                (message, version)
                for message in messages()
                for version in range(message.min_version, message.max_version + 1)
            ]
            ids = [f"{message.__name__}-v{version}" for message, version in pairs]
            metafunc.parametrize((name, "version"), pairs, ids=ids)
