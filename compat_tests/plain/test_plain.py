"""A broker that is plain Python, as it is where there is no compiler: what it stores, it has after a kill."""

from __future__ import annotations

import sys

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kwire.testing.process import BrokerProcess

PLAIN = "from kwire.testing import plain; plain.use(); from kwire.__main__ import main; main()"
RECORDS = 2_000


class PlainBroker(BrokerProcess):
    def command(self) -> list[str]:
        _, module, kwire, *rest = super().command()
        assert (module, kwire) == ("-m", "kwire")
        return [sys.executable, "-c", PLAIN, *rest]


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_what_was_acknowledged_is_there_after_a_kill(compression: str) -> None:
    with PlainBroker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        (made,) = admin.create_topics([NewTopic("plain", 1, config={"cleanup.policy": "compact"})]).values()
        made.result()
        producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": compression})
        for number in range(RECORDS):
            producer.produce("plain", key=str(number), value=b"v" * 100)
        assert producer.flush(30) == 0
        broker.kill()
        broker.restart()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "any", "enable.auto.commit": False})
        consumer.assign([TopicPartition("plain", 0, OFFSET_BEGINNING)])
        found = consumer.consume(RECORDS, 30)
        consumer.close()
    assert [message.key() for message in found] == [str(number).encode() for number in range(RECORDS)]
