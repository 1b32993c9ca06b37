"""The suites, by this client."""

from __future__ import annotations

from compat_tests import cases
from compat_tests.suites.administration import IncrementalAdminSuite, TopicAdminSuite
from compat_tests.suites.records import RecordSuite, TopicSuite
from compat_tests.suites.seeking import SeekSuite


class TestRecords(RecordSuite):
    matrix = cases.WITH_NOTHING


class TestTopics(TopicSuite):
    pass


class TestSeeking(SeekSuite):
    pass


class TestAdministration(TopicAdminSuite, IncrementalAdminSuite):
    pass
