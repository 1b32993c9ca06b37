"""TransactionsCommand, and what ConsoleConsumer makes of __transaction_state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import TIMEOUT, Record
from compat_tests.java_tools.console import coordinators_records
from compat_tests.java_tools.tools import JavaTools, ToolResult
from compat_tests.oracle.asking import batch
from compat_tests.oracle.wire import Wire
from compat_tests.transactions.client import Fenced
from compat_tests.transactions.confluent import ConfluentClient, ConfluentProducer
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kwire.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

pytestmark = pytest.mark.xdist_group("java")

STATES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
"""By the number that a record of __transaction_state has for it."""
UNVERIFIED = {"transaction.partition.verification.enable": "false"}
"""A broker that takes transactional records of which the coordinator does not know."""
WITHOUT_VERIFICATION = 11
"""The last version of Produce in which a producer adds its partitions to the transaction before."""


class Transactions:
    """TransactionsCommand against a broker."""

    def __init__(self, tools: JavaTools, bootstrap: str) -> None:
        self._tools = tools
        self._bootstrap = bootstrap

    def run(self, *arguments: str, exit_code: int = 0) -> ToolResult:
        words = ["--bootstrap-server", self._bootstrap, *arguments]
        return self._tools.run("TransactionsCommand", *words, bootstrap=False, exit_code=exit_code)

    def rows(self, *arguments: str) -> list[dict[str, str]]:
        """The table that the tool prints."""
        header, *rows = ([cell.strip() for cell in line.split("\t")] for line in self.run(*arguments).lines)
        return [dict(zip(header, row, strict=True)) for row in rows]

    def state(self, transactional_id: str) -> str | None:
        """As `list` has it."""
        return {row["TransactionalId"]: row["TransactionState"] for row in self.rows("list")}.get(transactional_id)


@pytest.fixture
def transactions(java_tools: JavaTools, kwire_broker: Any) -> Transactions:
    return Transactions(java_tools, kwire_broker.bootstrap)


@pytest.fixture
def name(new_name: Callable[[], str]) -> str:
    """A transactional id."""
    return new_name()


@pytest.fixture
def producer(kwire_broker: Any, name: str) -> Iterator[ConfluentProducer]:
    with ConfluentClient(kwire_broker.bootstrap).producer(name) as one:
        yield one


@pytest.fixture
def client(kwire_broker: Any) -> ConfluentClient:
    return ConfluentClient(kwire_broker.bootstrap)


def test_a_transaction_is_listed_and_described(
    transactions: Transactions, producer: ConfluentProducer, name: str, kwire_topic: str
) -> None:
    assert transactions.state(name) == "Empty"
    producer.begin()
    producer.send(kwire_topic, b"value")
    assert transactions.state(name) == "Ongoing"
    (row,) = transactions.rows("describe", "--transactional-id", name)
    assert (row["TransactionState"], row["TransactionTimeoutMs"]) == ("Ongoing", "60000")
    assert row["TopicPartitions"] == f"{kwire_topic}-0"
    assert int(row["TransactionDurationMs"]) >= 0
    producer.commit()
    deadline = time.monotonic() + TIMEOUT
    while transactions.state(name) != "CompleteCommit":
        assert time.monotonic() < deadline, "not complete"
    (row,) = transactions.rows("describe", "--transactional-id", name)
    assert (row["TransactionState"], row["TopicPartitions"]) == ("CompleteCommit", "")


def test_transactions_are_listed_by_duration_and_pattern(
    transactions: Transactions, producer: ConfluentProducer, name: str, kwire_topic: str
) -> None:
    producer.begin()
    producer.send(kwire_topic, b"value")
    by_pattern = transactions.rows("list", "--transactional-id-pattern", f".*{name[-8:]}")
    assert [row["TransactionalId"] for row in by_pattern] == [name]
    assert name not in {row["TransactionalId"] for row in transactions.rows("list", "--duration-filter", "100000000")}
    assert name in {row["TransactionalId"] for row in transactions.rows("list", "--duration-filter", "0")}


def test_an_unknown_transactional_id_is_not_described(java_tools: JavaTools, name: str) -> None:
    answer = java_tools.run("TransactionsCommand", "describe", "--transactional-id", name, exit_code=1)
    assert "could not be found" in answer.errors


def test_producers_of_a_partition(transactions: Transactions, producer: ConfluentProducer, kwire_topic: str) -> None:
    describe = ["describe-producers", "--topic", kwire_topic, "--partition", "0"]
    assert transactions.rows(*describe) == []
    producer.begin()
    producer.send(kwire_topic, b"value")
    producer.send(kwire_topic, b"value")
    (row,) = transactions.rows(*describe)
    assert (row["ProducerEpoch"], row["LastSequence"], row["CurrentTransactionStartOffset"]) == ("0", "1", "0")
    producer.commit()
    (row,) = transactions.rows(*describe)
    assert (row["LatestCoordinatorEpoch"], row["CurrentTransactionStartOffset"]) == ("0", "None")


def test_an_open_transaction_is_aborted_by_its_first_offset(
    transactions: Transactions, producer: ConfluentProducer, client: ConfluentClient, kwire_topic: str
) -> None:
    producer.begin()
    producer.send(kwire_topic, b"open")
    ConfluentDriver(client.bootstrap).produce(kwire_topic, [Record(value=b"after")])
    where = ["--topic", kwire_topic, "--partition", "0"]
    nothing = transactions.run("abort", *where, "--start-offset", "1", exit_code=1)
    assert "Could not find any open transactions" in nothing.errors
    assert client.read(kwire_topic) == []
    transactions.run("abort", *where, "--start-offset", "0")
    assert client.read(kwire_topic) == [b"after"]


def test_a_transactional_id_is_freed_by_force(
    transactions: Transactions, producer: ConfluentProducer, client: ConfluentClient, name: str, kwire_topic: str
) -> None:
    producer.begin()
    producer.send(kwire_topic, b"open")
    transactions.run("forceTerminateTransaction", "--transactionalId", name)
    with pytest.raises(Fenced):
        producer.commit()
    assert client.read(kwire_topic) == []


def test_a_hanging_transaction_is_found_and_aborted(
    java_tools: JavaTools, broker_with: Callable[..., Any], kwire_topic_factory: Callable[..., str], name: str
) -> None:
    broker = broker_with(UNVERIFIED)
    transactions, topic = Transactions(java_tools, broker.bootstrap), kwire_topic_factory(broker=broker)
    find = ["find-hanging", "--topic", topic, "--partition", "0", "--max-transaction-timeout", "1"]
    with ConfluentClient(broker.bootstrap).producer(f"{name}-well") as well:
        well.begin()
        well.send(topic, b"well")
        assert transactions.rows(*find) == []
        producer_id = leave_hanging(broker, topic, name)
        (row,) = transactions.rows(*find)
        assert (row["Topic"], row["ProducerId"], row["StartOffset"]) == (topic, str(producer_id), "1")
        assert int(row["Duration(min)"]) >= 60
        transactions.run("abort", "--topic", topic, "--partition", "0", "--start-offset", row["StartOffset"])
        assert transactions.rows(*find) == []
        well.commit()
    assert ConfluentClient(broker.bootstrap).read(topic) == [b"well"]


def leave_hanging(broker: Any, topic: str, name: str) -> int:
    """Writes a record, an hour old, of a transaction that was never begun; returns the producer id."""
    with closing(Wire(broker)) as wire:
        init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        wire.send(init, 4)
        given = wire.receive(InitProducerIdResponse, 4)
        an_hour_ago = int(time.time() * 1000) - 3_600_000
        records = batch(
            start=an_hour_ago,
            producer_id=given.producer_id,
            producer_epoch=given.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
        request = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=10_000, topic_data=[data])
        wire.send(request, WITHOUT_VERIFICATION)
        ((answer,),) = (
            told.partition_responses for told in wire.receive(ProduceResponse, WITHOUT_VERIFICATION).responses
        )
    assert answer.error_code == 0
    return given.producer_id


def test_the_console_consumer_shows_the_states_of_a_transaction(
    java_tools: JavaTools, producer: ConfluentProducer, name: str, kwire_topic: str
) -> None:
    producer.begin()
    producer.send(kwire_topic, b"value")
    producer.commit()
    wanted = ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
    deadline = time.monotonic() + TIMEOUT
    while (shown := states(java_tools, name)) != wanted:
        assert time.monotonic() < deadline, shown


def states(tools: JavaTools, name: str) -> list[str]:
    """Those that __transaction_state has for the transactional id, in their order."""
    return [
        STATES[entry["value"]["data"]["transactionStatus"]]
        for entry in coordinators_records(tools, "__transaction_state", name, "TransactionLogMessageFormatter")
        if entry["key"]["data"]["transactionalId"] == name
    ]
