"""What was acknowledged is there after kill -9, in order and, from an idempotent producer, once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests import cases
from compat_tests.confluent.driver import ConfluentAdmin, ConfluentDriver
from compat_tests.driver import Bounds, Record, Refused, Setting
from compat_tests.durability.streams import ConfluentStream, KafkaPythonStream, Stream
from compat_tests.kafka_python.driver import KafkaPythonDriver
from kwire.testing.process import BrokerProcess

STREAMS = {"confluent-kafka": ConfluentStream, "kafka-python": KafkaPythonStream}
TOPIC = "kept"


@pytest.fixture
def broker(kwire_broker_factory: Callable[..., BrokerProcess]) -> BrokerProcess:
    return kwire_broker_factory()


@pytest.fixture(params=STREAMS.values(), ids=STREAMS.keys())
def stream(request: pytest.FixtureRequest) -> type[Stream]:
    return request.param


def end(broker: BrokerProcess, how: str) -> None:
    broker.kill() if how == "kill" else broker.stop()


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_an_idempotent_producer_rides_through(broker: BrokerProcess, stream: type[Stream], how: str) -> None:
    ConfluentAdmin(broker.bootstrap).create_topic(TOPIC)
    producer = stream(broker.bootstrap, TOPIC, idempotent=True)
    sent = [b"%d" % place for place in range(6000)]
    for place, value in enumerate(sent):
        producer.send(place, value)
        if place in (2000, 4000):
            producer.wait_for(place // 2)
            end(broker, how)
            broker.restart()
    producer.finish()

    assert producer.failures == []
    assert producer.acknowledged == {place: place for place in range(len(sent))}
    driver = ConfluentDriver(broker.bootstrap)
    assert driver.bounds(TOPIC) == Bounds(0, len(sent))
    assert [record.value for record in driver.consume(TOPIC, len(sent))] == sent


def test_nothing_acknowledged_is_lost(broker: BrokerProcess, stream: type[Stream]) -> None:
    ConfluentAdmin(broker.bootstrap).create_topic(TOPIC)
    producer = stream(broker.bootstrap, TOPIC, idempotent=False)
    sent = [b"%d" % place for place in range(4000)]
    for place, value in enumerate(sent):
        producer.send(place, value)
    producer.wait_for(100)
    broker.kill()
    broker.restart()
    producer.finish()

    assert len(producer.acknowledged) == len(sent)
    driver = KafkaPythonDriver(broker.bootstrap)
    stored = [record.value for record in driver.consume(TOPIC, driver.bounds(TOPIC).end)]
    assert [stored[offset] for _, offset in sorted(producer.acknowledged.items())] == sent


def test_topics_and_configs_survive_a_kill(broker: BrokerProcess) -> None:
    admin, driver = ConfluentAdmin(broker.bootstrap), ConfluentDriver(broker.bootstrap)
    admin.create_topic("grown", partitions=2, configs={"retention.ms": "1234"})
    admin.create_topic("deleted")
    driver.produce("grown", cases.numbered(10))
    admin.create_partitions("grown", 5)
    admin.change_configs("topic", "grown", [("set", "segment.bytes", "2000000")])
    ((broker_id, _, _),) = admin.brokers()
    admin.change_configs("broker", str(broker_id), [("set", "log.retention.ms", "86400000")])
    admin.delete_topic("deleted")
    broker.kill()
    broker.restart()

    admin = ConfluentAdmin(broker.bootstrap)
    assert len(admin.describe_topic("grown").replicas) == 5
    settings = admin.topic_configs("grown")
    assert settings["retention.ms"] == Setting("1234", overridden=True)
    assert settings["segment.bytes"] == Setting("2000000", overridden=True)
    assert admin.broker_configs(str(broker_id))["log.retention.ms"] == Setting("86400000", overridden=True)
    assert driver.bounds("grown") == Bounds(0, 10)
    with pytest.raises(Refused):
        admin.topic_configs("deleted")


def test_a_torn_tail_and_lost_indexes(broker: BrokerProcess) -> None:
    """As a power cut leaves them: half a batch at the end of the log, indexes that never reached the disk."""
    ConfluentAdmin(broker.bootstrap).create_topic(TOPIC)
    driver = ConfluentDriver(broker.bootstrap)
    sent = cases.numbered(1000, size=100)
    for begin in range(0, 1000, 100):
        driver.produce(TOPIC, sent[begin : begin + 100])
    broker.kill()
    folder: Path = broker.data_dir / f"{TOPIC}-0"
    (segment,) = folder.glob("*.log")
    with segment.open("r+b") as log:
        torn = log.read(1500)
        log.seek(0, 2)
        log.write(torn)
    for index in (*folder.glob("*.index"), *folder.glob("*.timeindex")):
        index.unlink()
    broker.restart()

    assert driver.bounds(TOPIC) == Bounds(0, 1000)
    assert driver.offset_at(TOPIC, cases.BASE_TIME + 777) == 777
    assert driver.produce(TOPIC, [Record(value=b"after")]) == [1000]
    received = driver.consume(TOPIC, 1001)
    assert [record.value for record in received] == [record.value for record in sent] + [b"after"]
