"""Written by one client, read by all; and what the broker stored of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests import cases
from compat_tests.aiokafka.driver import AiokafkaDriver
from compat_tests.cases import COMPRESSIONS
from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import Driver, Record
from compat_tests.kafka_python.driver import KafkaPythonDriver
from compat_tests.kcat.driver import KcatDriver
from compat_tests.kcat.install import kcat_program
from compat_tests.suites.records import assert_same
from compat_tests.wire.raw import FETCH, codecs, connected, fetch_body, fetched_records

CLIENTS = ("kafka-python", "confluent-kafka", "aiokafka", "kcat")


@pytest.fixture
def drivers(kwire_broker: Any) -> dict[str, Driver]:
    bootstrap = kwire_broker.bootstrap
    return {
        "kafka-python": KafkaPythonDriver(bootstrap),
        "confluent-kafka": ConfluentDriver(bootstrap),
        "aiokafka": AiokafkaDriver(bootstrap),
        "kcat": KcatDriver(bootstrap, kcat_program()),
    }


def stored_codecs(broker: Any, topic: str) -> set[str]:
    """The compressions of the batches in a topic's only partition."""
    with connected(broker) as connection:
        error, records = fetched_records(connection.call(FETCH, 4, fetch_body(topic)))
    assert error == 0
    return {COMPRESSIONS[codec] for codec in codecs(records)}


@pytest.mark.parametrize("writer", CLIENTS)
def test_written_by_one_read_by_all(drivers: dict[str, Driver], writer: str, kwire_topic: str) -> None:
    records = cases.UNTIMED_TEXT if writer == "kcat" else cases.TEXT
    for compression in COMPRESSIONS:
        drivers[writer].produce(kwire_topic, records, compression=compression)

    sent: list[Record] = list(records) * len(COMPRESSIONS)
    received = {name: driver.consume(kwire_topic, len(sent)) for name, driver in drivers.items()}
    for reader in CLIENTS:
        assert_same(received[reader], sent)
        assert [record.timestamp for record in received[reader]] == [r.timestamp for r in received["confluent-kafka"]]


@pytest.mark.parametrize("writer", CLIENTS)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_batches_are_stored_as_sent(
    drivers: dict[str, Driver], kwire_broker: Any, kwire_topic: str, writer: str, compression: str
) -> None:
    drivers[writer].produce(kwire_topic, cases.numbered(50, size=100), compression=compression)

    assert stored_codecs(kwire_broker, kwire_topic) == {compression}


@pytest.mark.parametrize("compression", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_with_a_compression_of_its_own(
    drivers: dict[str, Driver], kwire_broker: Any, kwire_topic_factory: Callable[..., str], compression: str
) -> None:
    topic = kwire_topic_factory(configs={"compression.type": compression})
    sent = cases.numbered(50, size=100)
    for sent_with in ("none", "gzip", "lz4"):
        drivers["confluent-kafka"].produce(topic, sent, compression=sent_with)

    assert stored_codecs(kwire_broker, topic) == {"none" if compression == "uncompressed" else compression}
    for driver in drivers.values():
        assert_same(driver.consume(topic, 150), sent * 3)
