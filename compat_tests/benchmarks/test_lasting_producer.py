"""One JVM sends one load after the other."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from benchmarks.lasting_producer import LastingProducer
from benchmarks.loads import Produce, new_topic
from benchmarks.process import family
from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import Bounds

pytestmark = pytest.mark.xdist_group("java")


@pytest.fixture(scope="module")
def producer() -> Iterator[LastingProducer]:
    with closing(LastingProducer()) as lasting:
        yield lasting


def test_loads_one_after_the_other_in_one_jvm(kwire_broker: Any, producer: LastingProducer) -> None:
    lived = []
    for load in (Produce(700, 100, 1, "1"), Produce(50, 1024, 1, "all", compression="lz4")):
        topic = new_topic(kwire_broker.bootstrap, 1)
        assert producer.run(load, kwire_broker.bootstrap, topic).records_per_s > 0
        assert ConfluentDriver(kwire_broker.bootstrap).bounds(topic) == Bounds(0, load.records)
        lived.append(producer.pid)
    assert lived[0] == lived[1]


def test_what_a_load_failed_of_is_told_and_the_next_one_runs(kwire_broker: Any, producer: LastingProducer) -> None:
    topic = new_topic(kwire_broker.bootstrap, 1)
    with pytest.raises(RuntimeError, match="ConfigException: Invalid value unheard-of"):
        producer.run(Produce(10, 100, 1, "1", compression="unheard-of"), kwire_broker.bootstrap, topic)
    assert producer.run(Produce(10, 100, 1, "1"), kwire_broker.bootstrap, topic).records_per_s > 0


def test_a_jvm_that_is_gone_is_told_of_and_the_next_load_runs_in_another(
    kwire_broker: Any, producer: LastingProducer
) -> None:
    topic = new_topic(kwire_broker.bootstrap, 1)
    producer.run(Produce(10, 100, 1, "1"), kwire_broker.bootstrap, topic)
    assert producer.pid is not None
    os.kill(producer.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="ended with -9"):
        producer.run(Produce(10, 100, 1, "1"), kwire_broker.bootstrap, topic)
    assert producer.run(Produce(10, 100, 1, "1"), kwire_broker.bootstrap, topic).records_per_s > 0


def test_it_ends(kwire_broker: Any) -> None:
    with closing(LastingProducer()) as lasting:
        lasting.run(Produce(10, 100, 1, "1"), kwire_broker.bootstrap, new_topic(kwire_broker.bootstrap, 1))
        pid = lasting.pid
        assert pid in family(os.getpid())
    assert pid not in family(os.getpid())
