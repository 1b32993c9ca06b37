"""Starting to read at an offset or at a time."""

from __future__ import annotations

import pytest

from compat_tests import cases
from compat_tests.driver import Bounds, Driver, Refused
from kwire.protocol.errors import ErrorCode

RECORDS = cases.numbered(300)


class SeekSuite:
    """The records lie a millisecond apart, in three batches, the second of them compressed."""

    @pytest.fixture
    def writer(self, driver: Driver) -> Driver:
        return driver

    @pytest.fixture
    def topic(self, writer: Driver, kwire_topic: str) -> str:
        for begin, compression in ((0, "none"), (100, "gzip"), (200, "none")):
            writer.produce(kwire_topic, RECORDS[begin : begin + 100], compression=compression)
        return kwire_topic

    @pytest.mark.parametrize("offset", [0, 1, 99, 150, 200, 299])
    def test_by_offset(self, driver: Driver, topic: str, offset: int) -> None:
        received = driver.consume(topic, 300 - offset, start=offset)

        assert [record.offset for record in received] == list(range(offset, 300))
        assert [record.value for record in received] == [record.value for record in RECORDS[offset:]]

    def test_past_the_end(self, driver: Driver, topic: str) -> None:
        with pytest.raises(Refused) as refused:
            driver.consume(topic, 1, start=1000)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE

        received = driver.consume(topic, 1, start=1000, reset="earliest")
        assert received[0].offset == 0

    def test_by_time(self, driver: Driver, topic: str) -> None:
        times = {-1000: 0, 0: 0, 1: 1, 99: 99, 100: 100, 150: 150, 299: 299}

        assert {t: driver.offset_at(topic, cases.BASE_TIME + t) for t in times} == times
        assert driver.offset_at(topic, cases.BASE_TIME + 300) is None
        assert driver.bounds(topic) == Bounds(0, 300)

    def test_by_time_and_read(self, driver: Driver, topic: str) -> None:
        offset = driver.offset_at(topic, cases.BASE_TIME + 177)
        assert offset is not None

        received = driver.consume(topic, 10, start=offset)
        assert [record.timestamp for record in received] == [cases.BASE_TIME + 177 + i for i in range(10)]
