"""The steps of the benchmarks run, with loads too small to say anything of speed."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from benchmarks import connections, consumer_limits, flatness, latency, limits, metadata, partitions, readers, requests
from benchmarks.bare_process import bare_server
from benchmarks.first_produce import produce_first
from benchmarks.group_coordinator import await_coordinator
from benchmarks.large_log import large_log
from benchmarks.loads import Produce, new_topic
from benchmarks.pairs import make_kwire
from benchmarks.steps import Figures, OnBroker, Steady, fresh, produce_and_consume
from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import TIMEOUT, Bounds, Record, Refused

pytestmark = pytest.mark.xdist_group("java")

FIGURES = {
    "produced records/s",
    "ms produced, p50",
    "ms produced, p99",
    "ms produced, p99.9",
    "CPU s per M produced",
    "CPU s per GB produced",
    "consumed records/s",
    "CPU s per M consumed",
    "CPU s per GB consumed",
    "MB at most",
}


def test_the_first_produce_is_one_record(kwire_broker: Any, new_name: Any) -> None:
    topic = new_name()
    produce_first(kwire_broker.host, kwire_broker.port, topic, time.monotonic() + TIMEOUT)
    assert ConfluentDriver(kwire_broker.bootstrap).bounds(topic) == Bounds(0, 1)


def test_nobody_to_acknowledge_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(TimeoutError):
        produce_first("127.0.0.1", port, "topic", time.monotonic() + 0.05)


@pytest.mark.parametrize(
    "load",
    [limits.Requests(2, 200, 1_000), limits.Records(100), limits.Fetches(60)],
    ids=["requests", "passed on", "fetches"],
)
def test_what_trio_alone_can_do(monkeypatch: pytest.MonkeyPatch, load: limits.Load[Any]) -> None:
    """The bare server takes the frames, of one read or several, for those of a broker that accepts them."""
    monkeypatch.setattr(limits, "_WARM_UP_S", 0.1)
    monkeypatch.setattr(limits, "_MEASURED_S", 0.3)
    for cost in limits.measure(load):
        assert cost.rate > 0


@pytest.mark.parametrize(
    "load",
    [Produce(4000, 1_000, 2, "1"), Produce(4000, 1_000, 2, "all", compression="gzip", transactional=True)],
    ids=["records alone", "compressed, in transactions"],
)
def test_what_a_consumer_can_do(monkeypatch: pytest.MonkeyPatch, load: Produce) -> None:
    """More than once: each leaves its last Fetch waiting at the bare server."""
    monkeypatch.setattr(consumer_limits, "make_ready", lambda: None)
    found = consumer_limits.measure(load, 2)
    assert len(found) == 2
    assert all(read.rate > 0 for pair in found for read in pair)


def test_a_consumer_gets_the_same_from_the_bare_server(kwire_broker_factory: Any) -> None:
    """Out of segments behind whose end there still is kwire's padding, from their middle too."""
    broker = kwire_broker_factory()
    topic = new_topic(broker.bootstrap, 2)
    Produce(4000, 1_000, 2, "1").run(broker.bootstrap, topic)
    with bare_server("benchmarks.bare_consuming", str(broker.data_dir), topic, "2") as (bootstrap, _):
        for starts in ({0: 0, 1: 0}, {0: 101, 1: 0}):
            kwires, bares = (
                ConfluentDriver(each).consume(topic, 4000 - starts[0], start=starts)
                for each in (broker.bootstrap, bootstrap)
            )
            assert len(kwires) == 4000 - starts[0]
            assert set(bares) == set(kwires)
            assert len(bares) == len(kwires)


def test_a_fresh_broker() -> None:
    figures = fresh(produce_and_consume(Produce(2000, 100, 6, "all")))(make_kwire)
    assert set(figures) == FIGURES
    assert figures["produced records/s"] > 0
    assert figures["consumed records/s"] > 0


def test_what_kwire_has_to_look_at_is_refused_where_it_is_old(kwire_broker: Any) -> None:
    """So that the limit of such a load is one."""
    load = Produce(10, 100, 1, "1", limited=True)
    assert load.run(kwire_broker.bootstrap, new_topic(kwire_broker.bootstrap, 1, load.topic_config)).records_per_s > 0
    topic = new_topic(kwire_broker.bootstrap, 1, load.topic_config)
    old = Record(value=b"", timestamp=int(time.time() * 1000) - 86_400_000 - 60_000)
    with pytest.raises(Refused, match="INVALID_TIMESTAMP"):
        ConfluentDriver(kwire_broker.bootstrap).produce(topic, [old])


def test_a_broker_is_ready_for_consumers_before_they_are_measured(kwire_broker_factory: Any) -> None:
    broker = kwire_broker_factory()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert "__consumer_offsets" not in admin.list_topics(timeout=TIMEOUT).topics
    await_coordinator(broker.bootstrap)
    assert len(admin.list_topics(timeout=TIMEOUT).topics["__consumer_offsets"].partitions) == 50


def test_a_broker_that_lives_on() -> None:
    steady = Steady(2000)
    made = []

    def make() -> Any:
        made.append(make_kwire())
        return made[-1]

    try:
        for records in (1000, 1001):
            measure = produce_and_consume(Produce(records, 1024, 1, "1"), steady.producer.run, warm_up=500)
            assert set(steady.step(measure)(make)) == FIGURES
        (broker,) = made
        assert broker.running
    finally:
        steady.close()
    assert not broker.running


def all_above_nothing(figures: Figures) -> bool:
    """The CPU time of a small load is less than a tick of the clock that counts it, memory may have been there."""
    return all(value > 0 for name, value in figures.items() if not name.startswith(("CPU", "KB")))


def _beside(rate: int) -> latency.HalfLoad:
    half = latency.HalfLoad(fresh, Produce(1000, 100, 6, "1"), Produce.run)
    half.rate = rate
    return half


@pytest.mark.parametrize(
    ("measure", "figure"),
    [
        (latency._measure(0.3), "ms to the consumer, p99.9"),
        (latency._measure(0.3, _beside(1_000)), "records/s beside"),
        (readers._fan_out(Produce.run), "consumed records/s, all together"),
        (readers._catch_up(1, Produce.run), "MB/s read"),
        (requests._measure(2, 1), "CPU s per 1,000 requests"),
        (connections._measure(3), "ms for Metadata, p50"),
    ],
    ids=["latency", "latency-beside", "fan-out", "catch-up", "requests", "connections"],
)
def test_a_measure(monkeypatch: pytest.MonkeyPatch, measure: OnBroker, figure: str) -> None:
    for module, wait in (
        (latency, "_WARM_UP_S"),
        (requests, "_WARM_UP_S"),
        (requests, "_MEASURED_S"),
        (connections, "_SETTLE_S"),
        (connections, "_IDLE_S"),
        (metadata, "_ASKED_S"),
    ):
        monkeypatch.setattr(module, wait, 0.1)
    monkeypatch.setattr(readers, "SHARED", Produce(600, 1024, 6, "1"))
    figures = fresh(measure)(make_kwire)
    assert {figure, "MB at most"} <= set(figures)
    assert all_above_nothing(figures)


def test_the_life_of_a_broker_with_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    for wait in ("_SETTLE_S", "_IDLE_S"):
        monkeypatch.setattr(partitions, wait, 0.1)
    monkeypatch.setattr(metadata, "_ASKED_S", 0.1)
    figures = partitions.partitions(1, 100)(make_kwire)
    assert {"CPU ms per request", "CPU s per M", "ms for Metadata, p50", "KB a partition, new and empty"} <= set(
        figures
    )
    assert all_above_nothing(figures)


def test_requests_in_turn_to_a_broker_with_one_partition_and_one_with_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for wait in ("_SETTLE_S", "_TURN_S"):
        monkeypatch.setattr(flatness, wait, 0.1)
    figures = flatness.beside(1_000)(make_kwire)
    assert {"CPU ms per request: 1 partition", "CPU ms per request: 1,000 partitions"} <= set(figures)
    assert all_above_nothing(figures)


def test_the_life_of_a_broker_with_a_large_log() -> None:
    figures = large_log(0.02)(make_kwire)
    assert {"CPU s per M written", "CPU s per GB written", "CPU ms per read or look-up"} <= set(figures)
    assert all_above_nothing(figures)
