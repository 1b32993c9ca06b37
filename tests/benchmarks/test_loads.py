"""A load tells ProducerPerformance what to send, and reads from its output how that went."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import Future
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from benchmarks.loads import Produce, Sent, consume, create_topic, records_in

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


def test_a_client_that_waited_for_leaders_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: until the garbage collector comes it would ask for a broker that has ended, and tell of that."""
    attempts = count()
    made: list[weakref.ref[Any]] = []

    def done(error: BaseException | None) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(error) if error else future.set_result(SimpleNamespace(offset=0))
        return future

    class FakeAdmin:
        def create_topics(self, topics: list[Any]) -> dict[str, Future[Any]]:
            return {topic.topic: done(None) for topic in topics}

        def list_offsets(self, asked: dict[Any, Any], **_: object) -> dict[Any, Future[Any]]:
            not_led = KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)) if next(attempts) < 2 else None
            return {partition: done(not_led) for partition in asked}

    def make(_: dict[str, Any]) -> FakeAdmin:
        admin = FakeAdmin()
        made.append(weakref.ref(admin))
        return admin

    monkeypatch.setattr("confluent_kafka.admin.AdminClient", make)
    gc.disable()
    try:
        create_topic("localhost:1", "t", 2)
        assert [client() for client in made] == [None]
    finally:
        gc.enable()
    assert next(attempts) == 3


def test_a_client_lives_until_it_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of one that is forgotten before never comes."""

    class Awaited(Future[Any]):
        def __init__(self, client: weakref.ref[Any]) -> None:
            super().__init__()
            self.client = client

        def result(self, timeout: float | None = None) -> Any:
            assert self.client() is not None
            return SimpleNamespace(offset=3)

    class FakeAdmin:
        def __init__(self, _: dict[str, Any]) -> None:
            pass

        def list_offsets(self, asked: dict[Any, Any], **_: object) -> dict[Any, Future[Any]]:
            return {partition: Awaited(weakref.ref(self)) for partition in asked}

    monkeypatch.setattr("confluent_kafka.admin.AdminClient", FakeAdmin)
    assert records_in("localhost:1", "t", 2) == 6
