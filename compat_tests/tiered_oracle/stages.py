"""What a topic goes through on its way to remote storage, and everything that may be asked of it at each stage."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from compat_tests.cases import BASE_TIME
from compat_tests.oracle.asking import TOPIC, batch, fetch, fill, list_offsets
from compat_tests.oracle.sides import PATIENCE, POLL, Side
from compat_tests.oracle.topic_changes import SET, change
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.list_offsets import ListOffsetsResponse

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
SPECIAL = (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD)
READ_COMMITTED = 1
RECORDS = 3
"""In a batch."""
SEGMENT_BATCHES = 2
SEGMENT = RECORDS * SEGMENT_BATCHES
"""Records of a segment."""
BATCH_BYTES = 400
"""Somewhat less than a batch has."""

TIERED = {
    "remote_storage_enable": "true",
    "internal_segment_bytes": "1000",
    "index_interval_bytes": "300",
    "file_delete_delay_ms": "0",
}
READ_ONLY = {"remote_log_copy_disable": "true"}


def settle(side: Side, topic: str, partition: int = 0) -> None:
    """Waits until it is known what of a topic with records is in remote storage, which may take a broker a while."""
    deadline = time.monotonic() + PATIENCE
    while (answer := side.call(list_offsets(topic, 0, partition=partition)).topics[0].partitions[0]).error_code:
        assert time.monotonic() < deadline, (side, topic, answer)
        time.sleep(POLL)


def some(number: int) -> bytes:
    """The topic's batch of that number."""
    return batch(RECORDS, start=BASE_TIME + 1000 * number, step=100, size=100)


def fill_segments(side: Side, topic: str, segments: int, *, partition: int = 0) -> int:
    """Fills so many segments and begins one more with one batch; returns the log's end."""
    count = segments * SEGMENT_BATCHES + 1
    fill(side, topic, *map(some, range(count)), partition=partition)
    settle(side, topic, partition)
    return count * RECORDS


def set_configs(side: Side, topic: str, configs: Mapping[str, str]) -> None:
    """Of names with '_' for '.'."""
    changes = [(SET, key.replace("_", "."), value) for key, value in configs.items()]
    (answer,) = side.call(change((TOPIC, topic, changes))).responses
    assert not answer.error_code, answer


def offsets(side: Side, topic: str, partition: int = 0) -> dict[int, int]:
    """What ListOffsets says of SPECIAL now."""
    found = {}
    for special in SPECIAL:
        (answer,) = side.call(list_offsets(topic, special, partition=partition)).topics[0].partitions
        found[special] = answer.offset
    return found


def wait_for(side: Side, topic: str, expected: Mapping[int, int], partition: int = 0) -> None:
    """Waits until ListOffsets says so of some of SPECIAL."""
    deadline = time.monotonic() + PATIENCE
    while not expected.items() <= (found := offsets(side, topic, partition)).items():
        assert time.monotonic() < deadline, (side, topic, found, expected)
        time.sleep(POLL)


def ask_offsets(side: Side, topic: str, times: Sequence[int], note: str) -> None:
    """All the special ones, and times."""
    for timestamp in (*SPECIAL, *times):
        for isolation in (0, READ_COMMITTED):
            request = list_offsets(topic, timestamp, isolation_level=isolation)
            side.ask(request, note=f"{note}: {timestamp}, isolation {isolation}", until=_looked_up)


def _looked_up(answer: ListOffsetsResponse) -> bool:
    """Apache Kafka answers REQUEST_TIMED_OUT, long before any time is out, where a look into remote storage ends while
    it is looked whether it has."""
    return answer.topics[0].partitions[0].error_code != ErrorCode.REQUEST_TIMED_OUT


def ask_fetches(side: Side, topic: str, offsets: Sequence[int], note: str) -> None:
    """From each offset, with room for little and for much."""
    for offset in offsets:
        for isolation in (0, READ_COMMITTED):
            side.ask(fetch(side, topic, offset, isolation_level=isolation), note=f"{note}: {offset}, {isolation=}")
        for most in (0, 1, BATCH_BYTES, 3 * BATCH_BYTES // 2):
            side.ask(fetch(side, topic, offset, partition_max_bytes=most), note=f"{note}: {offset}, {most} of it")
            side.ask(fetch(side, topic, offset, max_bytes=most), note=f"{note}: {offset}, {most} bytes")


TIMES = (0, BASE_TIME, BASE_TIME + 150, BASE_TIME + 3100, BASE_TIME + 5200, BASE_TIME + 9100, BASE_TIME + 10**6)


def ask_all(side: Side, topic: str, end: int, note: str) -> None:
    ask_offsets(side, topic, TIMES, note)
    ask_fetches(side, topic, (0, 1, 3, 7, 12, 13, 19, end - 1, end, end + 1, -1), note)
