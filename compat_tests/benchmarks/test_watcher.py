"""Who watches a broker fails where what it watches fails."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from benchmarks import raw
from benchmarks.watcher import arriving, passing, producing
from compat_tests.confluent.driver import ConfluentAdmin, ConfluentDriver
from compat_tests.driver import Bounds, Record


def test_a_record_that_is_not_acknowledged(kwire_broker: Any, kwire_topic_factory: Any) -> None:
    topic, admin = kwire_topic_factory(), ConfluentAdmin(kwire_broker.bootstrap)
    with (
        pytest.raises(RuntimeError, match=r"benchmarks\.paced failed with 1"),
        producing(kwire_broker.bootstrap, topic, 100),
    ):
        admin.replace_topic_configs(topic, {"max.message.bytes": "50"})


def test_the_first_record_is_not_acknowledged(kwire_broker: Any, kwire_topic_factory: Any) -> None:
    topic = kwire_topic_factory(configs={"max.message.bytes": "50"})
    with (
        pytest.raises(RuntimeError, match=r"benchmarks\.paced did not begin"),
        producing(kwire_broker.bootstrap, topic, 100),
    ):
        pytest.fail("it began")


def test_all_that_was_written_meanwhile_has_arrived(kwire_broker: Any, kwire_topic_factory: Any) -> None:
    topic = kwire_topic_factory(partitions=2)
    driver = ConfluentDriver(kwire_broker.bootstrap)
    driver.produce(topic, [Record(value=b"1")])
    with arriving(kwire_broker.bootstrap, topic) as ages:
        for partition in (0, 1):
            driver.produce(topic, [Record(value=b"%d" % number, partition=partition) for number in range(501)])
    assert ages.count == 1000  # and the two of value 0 do not count


def test_each_record_that_is_acknowledged_arrives(kwire_broker: Any, kwire_topic_factory: Any) -> None:
    topic = kwire_topic_factory()
    with passing(kwire_broker.bootstrap, topic, 1000) as (ages, acks):
        pass
    assert acks.count > 0
    assert ConfluentDriver(kwire_broker.bootstrap).bounds(topic) == Bounds(0, 1 + ages.count)


def test_a_broker_that_does_not_answer(kwire_broker_factory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = kwire_broker_factory()
    ConfluentAdmin(broker.bootstrap).create_topic("t")
    producers = raw.Producers(broker.bootstrap, "t", 2)
    try:
        monkeypatch.setattr(raw, "_PATIENCE_S", 0.2)
        os.kill(broker.pid, signal.SIGSTOP)
        with pytest.raises(TimeoutError, match="2 requests were not answered"):
            producers.run(0.1)
    finally:
        os.kill(broker.pid, signal.SIGCONT)
        producers.close()
