"""The suites, by kwire's own client: what it cannot do here, no other client is to blame for."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.kwire_client.driver import KwireDriver
from compat_tests.suites.records import RecordSuite, TopicSuite
from compat_tests.suites.seeking import SeekSuite


@pytest.fixture
def driver(kwire_broker: Any) -> KwireDriver:
    return KwireDriver(kwire_broker.bootstrap)


class TestRecords(RecordSuite):
    pass


class TestTopics(TopicSuite):
    pass


class TestSeeking(SeekSuite):
    pass
