from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.oracle.conftest import KAFKAS_OWN, SETTINGS
from compat_tests.tiered_oracle.tiered_both import TieredBoth
from jvm import kafka_tiered
from jvm.apache_kafka import SMALL_JVM, ApacheKafka
from kwire.testing.process import BrokerProcess

OF_BOTH = SETTINGS | {
    "remote.log.storage.system.enable": "true",
    "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
    # What can be copied, and what has expired, is looked for all the time.
    "remote.log.manager.task.interval.ms": 100,
    "log.retention.check.interval.ms": 100,
    # However busy the machine is, what is remote is waited for.
    "remote.fetch.max.wait.ms": 20_000,
}


@pytest.fixture(scope="session")
def tiered(against: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TieredBoth]:
    """Apache Kafka and kwire, both with tiered storage."""
    if against:
        pytest.skip("compares kwire with an Apache Kafka of its own")
    kafkas, kwires = tmp_path_factory.mktemp("kafkas-objects"), tmp_path_factory.mktemp("kwires-objects")
    of_kafka = OF_BOTH | KAFKAS_OWN | kafka_tiered.settings(kafkas) | {"log.initial.task.delay.ms": 100}
    of_kwire = OF_BOTH | {"rsm.config.storage.backend.class": "directory", "rsm.config.storage.root": kwires}
    with ApacheKafka(of_kafka, options=SMALL_JVM) as kafka, BrokerProcess(of_kwire) as kwire:
        yield TieredBoth(kafka, kwire, kafkas, kwires)
