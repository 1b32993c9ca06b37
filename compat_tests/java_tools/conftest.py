from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.java_tools.tools import JavaTools
from kwire.testing.process import BrokerProcess


@pytest.fixture(scope="session")
def java_tools(kwire_broker: BrokerProcess) -> Iterator[JavaTools]:
    """The stock tools, pointed at the session's broker."""
    tools = JavaTools(kwire_broker.bootstrap)
    yield tools
    tools.close()
