from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.oracle.both import Both
from jvm.apache_kafka import SMALL_JVM, ApacheKafka
from kwire.testing.process import BrokerProcess

SETTINGS = {
    # The tests write records of fixed times long past: they shall stay.
    "log.retention.ms": -1,
    # What Apache Kafka creates when somebody looks for a coordinator takes long enough with one partition.
    "offsets.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    # A target assignment is made when it is needed, not up to a second later.
    "group.consumer.assignment.interval.ms": 0,
    "transaction.state.log.num.partitions": 1,
    # What is due to be cleaned is cleaned at once.
    "log.cleaner.backoff.ms": 50,
    # Transactions that are open for too long are soon aborted.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}
"""Of both brokers."""
KAFKAS_OWN = {
    "share.coordinator.state.topic.num.partitions": 1,
}


@pytest.fixture(scope="session")
def both(against: Any) -> Iterator[Both]:
    """Apache Kafka and kwire, both running with SETTINGS."""
    if against:
        pytest.skip("compares kwire with an Apache Kafka of its own")
    with ApacheKafka(SETTINGS | KAFKAS_OWN, options=SMALL_JVM) as kafka, BrokerProcess(SETTINGS) as kwire:
        yield Both(kafka, kwire)
