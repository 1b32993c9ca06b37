from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.oracle.both import Both
from jvm.apache_kafka import ApacheKafka
from kwire.testing.process import BrokerProcess

HEAP = ("-Xms256m", "-Xmx512m", "-XX:TieredStopAtLevel=1")
"""Little memory, and code compiled once: it runs for a minute."""
SETTINGS = {"log.retention.ms": -1}
"""Of both brokers. The tests write records of fixed times long past: they shall stay."""
KAFKAS_OWN = {
    # What it creates when somebody looks for a coordinator takes long enough with one partition each.
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}


@pytest.fixture(scope="session")
def both(against: Any) -> Iterator[Both]:
    """Apache Kafka and kwire, both running with SETTINGS."""
    if against:
        pytest.skip("compares kwire with an Apache Kafka of its own")
    with ApacheKafka(SETTINGS | KAFKAS_OWN, heap=HEAP) as kafka, BrokerProcess(SETTINGS) as kwire:
        yield Both(kafka, kwire)
