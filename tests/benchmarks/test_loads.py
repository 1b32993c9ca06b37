"""A load tells ProducerPerformance what to send, and reads from its output how that went."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from benchmarks.loads import Produce, Sent, consume

_SUMMARY = (
    "{} records sent, {} records/sec (103.06 MB/sec), 69.68 ms avg latency, 386.00 ms max latency, "
    "{} ms 50th, 45 ms 95th, 67 ms 99th, 89 ms 99.9th.\n"
)
_INTERVAL = "{} records sent, {} records/sec (103.06 MB/sec), 69.7 ms avg latency, 386.0 ms max latency.\n"


def test_what_is_told_is_that_of_the_whole_run() -> None:
    output = _INTERVAL.format(150, "60.5") + _SUMMARY.format(400, "75.25", 23)
    assert Produce(400, 100, 1, "1").reported(output) == Sent(75.25, 23, 67, 89)


@pytest.mark.parametrize("output", ["", _INTERVAL.format(400, "75.25"), _SUMMARY.format(399, "75.25", 23)])
def test_a_run_that_did_not_send_all_is_none(output: str) -> None:
    with pytest.raises(RuntimeError, match="did not send 400 records"):
        Produce(400, 100, 1, "1").reported(output)


@pytest.mark.parametrize("consumers", [1, 2])
def test_what_would_keep_a_consumer_waiting(monkeypatch: pytest.MonkeyPatch, consumers: int) -> None:
    """To be asked for more than is left, until its time is over; to be told to read what it knows no leaders of,
    half a second."""
    asked: list[int] = []

    class Message:
        def error(self) -> None:
            return None

    class FakeConsumer:
        def __init__(self, settings: dict[str, object]) -> None:
            pass

        def list_topics(self, topic: str, timeout: float) -> None:
            self.known = topic

        def assign(self, partitions: list[TopicPartition]) -> None:
            assert [partition.topic for partition in partitions] == [self.known]

        def consume(self, count: int, timeout: float) -> list[Message]:
            asked.append(count)
            return [Message()] * count

        def close(self) -> None:
            pass

    monkeypatch.setattr("confluent_kafka.Consumer", FakeConsumer)
    assert consume("localhost:1", "t", 1, 10_123, consumers) > 0
    assert sorted(asked) == sorted([10_000, 123] * consumers)
