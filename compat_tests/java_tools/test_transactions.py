"""TransactionsCommand (`kafka-transactions.sh`): lists, describes, finds what hangs and aborts it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, Producer

from compat_tests.java_tools.console import WAIT_MS, produce
from compat_tests.java_tools.tools import JavaTools
from compat_tests.oracle.wire import Wire
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from kwire.testing.process import BrokerProcess

pytestmark = pytest.mark.xdist_group("java")

TIMEOUT = 60
LONG_AGO = 1_700_000_000_000
STRANGER = 123_456_789
"""A producer id that no transaction coordinator knows."""
PRODUCE_VERSION = 11

Settled = Callable[[Callable[[], None]], None]


def rows(tools: JavaTools, *arguments: str) -> list[dict[str, str]]:
    """The table that the tool prints."""
    head, *lines = (line.split() for line in tools.run("TransactionsCommand", *arguments).lines)
    return [dict(zip(head, line, strict=False)) for line in lines]


def begun(broker: BrokerProcess, transactional_id: str, topic: str) -> Producer:
    """A producer that has written one record in a transaction that goes on."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(TIMEOUT)
    producer.begin_transaction()
    producer.produce(topic, b"value")
    assert producer.flush(TIMEOUT) == 0
    return producer


def test_open_transactions_are_listed_and_described(
    java_tools: JavaTools, kwire_broker: BrokerProcess, kwire_topic: str, settled: Settled
) -> None:
    begun(kwire_broker, f"of-{kwire_topic}", kwire_topic)

    def listed() -> None:
        named = ["--transactional-id-pattern", f"of-{kwire_topic}"]
        (found,) = rows(java_tools, "list", *named)
        assert found["TransactionState"] == "Ongoing"
        assert rows(java_tools, "list", *named, "--duration-filter", "3600000") == []

    settled(listed)
    (told,) = rows(java_tools, "describe", "--transactional-id", f"of-{kwire_topic}")
    assert (told["TransactionState"], told["TopicPartitions"]) == ("Ongoing", f"{kwire_topic}-0")
    (writer,) = rows(java_tools, "describe-producers", "--topic", kwire_topic, "--partition", "0")
    assert writer["ProducerId"] == told["ProducerId"]
    assert writer["CurrentTransactionStartOffset"] == "0"
    assert rows(java_tools, "find-hanging", "--topic", kwire_topic, "--partition", "0") == []


def test_a_transaction_is_terminated(java_tools: JavaTools, kwire_broker: BrokerProcess, kwire_topic: str) -> None:
    transactional_id = f"of-{kwire_topic}"
    zombie = begun(kwire_broker, transactional_id, kwire_topic)
    java_tools.run("TransactionsCommand", "forceTerminateTransaction", "--transactionalId", transactional_id)
    assert committed(java_tools, kwire_topic, 0) == []
    (told,) = rows(java_tools, "describe", "--transactional-id", transactional_id)
    assert told["TransactionState"] in ("CompleteAbort", "Empty")
    with pytest.raises(KafkaException):
        zombie.commit_transaction(TIMEOUT)


def test_what_hangs_is_found_and_aborted(java_tools: JavaTools, kwire_broker: BrokerProcess, kwire_topic: str) -> None:
    allow = ["--entity-type", "brokers", "--entity-default", "--alter"]
    verification = "transaction.partition.verification.enable"
    java_tools.run("ConfigCommand", *allow, "--add-config", f"{verification}=false")
    try:
        write_as_a_stranger(kwire_broker, kwire_topic)
    finally:
        java_tools.run("ConfigCommand", *allow, "--delete-config", verification)
    produce(java_tools, kwire_topic, ["behind"], whole_records=False)
    assert committed(java_tools, kwire_topic, 0) == []
    where = ["--topic", kwire_topic, "--partition", "0"]
    (found,) = rows(java_tools, "find-hanging", *where)
    assert (found["ProducerId"], found["StartOffset"]) == (str(STRANGER), "0")
    java_tools.run("TransactionsCommand", "abort", *where, "--start-offset", "0")
    assert rows(java_tools, "find-hanging", *where) == []
    assert committed(java_tools, kwire_topic, 1) == ["behind"]


def write_as_a_stranger(broker: BrokerProcess, topic: str) -> None:
    """Leaves a transaction open of which no coordinator knows."""
    blob = build_batch(
        [Record(0, LONG_AGO, None, b"hanging", [])],
        producer_id=STRANGER,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=blob)])
    wire = Wire(broker)
    try:
        wire.send(
            ProduceRequest(transactional_id="stranger", acks=-1, timeout_ms=WAIT_MS, topic_data=[data]), PRODUCE_VERSION
        )
        response = wire.receive(ProduceResponse, PRODUCE_VERSION)
    finally:
        wire.socket.close()
    assert isinstance(response, ProduceResponse)
    assert response.responses[0].partition_responses[0].error_code == 0, response


def committed(tools: JavaTools, topic: str, count: int) -> list[str]:
    """The values that a consumer reads that wants committed records only; it waits for so many."""
    bounds = ["--max-messages", str(count), "--timeout-ms", str(WAIT_MS)] if count else ["--timeout-ms", "2000"]
    return tools.run(
        "ConsoleConsumer", "--topic", topic, "--partition", "0", "--offset", "earliest", *bounds,
        "--isolation-level", "read_committed", exit_code=0,
    ).lines  # fmt: skip


def test_the_internal_topic_is_read_by_the_stock_formatter(
    java_tools: JavaTools, kwire_broker: BrokerProcess, kwire_topic: str
) -> None:
    transactional_id = f"of-{kwire_topic}"
    begun(kwire_broker, transactional_id, kwire_topic).abort_transaction(TIMEOUT)
    seen: list[int] = []
    formatter = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
    deadline = time.monotonic() + TIMEOUT
    while 5 not in seen and time.monotonic() < deadline:
        output = java_tools.run(
            "ConsoleConsumer", "--topic", "__transaction_state", "--from-beginning", "--timeout-ms", "5000",
            "--formatter", formatter,
        ).output  # fmt: skip
        records = [json.loads(line) for line in output.replace("}{", "}\n{").splitlines()]
        seen = [
            record["value"]["data"]["transactionStatus"]
            for record in records
            if record["key"]["data"]["transactionalId"] == transactional_id and record["value"]
        ]
    assert seen == [0, 1, 3, 5]
