"""Groups and transactions: rebalances, commits, transactions, an exactly-once copy, and what groups cost the others.

Rebalances are driven by kwire's own client, which speaks the protocol and nothing else: a stock consumer notices a
rebalance by its next heartbeat, so that its heartbeat interval would be all that is measured. The rest is librdkafka,
and Java's producer.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from benchmarks.client import connect
from benchmarks.group_coordinator import coordinated
from benchmarks.loads import create_topic
from benchmarks.process import cpu_seconds
from benchmarks.quantile import quantile
from benchmarks.steps import Figures, OnBroker, Step, cost, fresh
from benchmarks.watcher import watching
from jvm import apache_kafka, programs
from kwire.client.connection import Connection
from kwire.protocol.messages.heartbeat import HeartbeatRequest
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kwire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

NO_DELAY = {"group.initial.rebalance.delay.ms": "0"}
"""For both sides: a first rebalance waits for nobody."""

_HEARTBEAT_S = 0.2
_GIVE_UP_S = 120.0
_GROUPS = 3
"""That form one after the other, each of them counting."""
_WARM_UP = 1000
"""Operations before those that count."""
_SIZE = 100
"""Bytes of a record in a transaction."""
_TRANSACTIONS = Path(__file__).with_name("Transactions.java")
_SUBSCRIPTION = bytes(100)
_ASSIGNMENT = bytes(100)


class _Group:
    """A group's members, from the first join until all of them have synced in one generation."""

    def __init__(self, broker: Any, group_id: str, size: int) -> None:
        self._bootstrap = broker.bootstrap
        self._id = group_id
        self._size = size
        self._generations: dict[int, int] = {}
        self._stable = trio.Event()

    async def run(self) -> float:
        """Seconds until the group is stable, its connections being open before."""
        connections = [await connect(self._bootstrap) for _ in range(self._size)]
        await coordinated(connections[0], self._id)
        started = time.perf_counter()
        with trio.fail_after(_GIVE_UP_S):
            async with trio.open_nursery() as nursery:
                for number, connection in enumerate(connections):
                    nursery.start_soon(self._member, number, connection)
                await self._stable.wait()
                seconds = time.perf_counter() - started
                nursery.cancel_scope.cancel()
        for connection in connections:
            connection.close()
        return seconds

    async def _member(self, number: int, connection: Connection) -> None:
        member_id = ""
        while True:
            joined = await self._join(connection, member_id)
            member_id = joined.member_id
            if joined.error_code:
                continue
            synced = await connection.call(
                SyncGroupRequest(
                    group_id=self._id,
                    generation_id=joined.generation_id,
                    member_id=member_id,
                    protocol_type=joined.protocol_type,
                    protocol_name=joined.protocol_name,
                    assignments=[
                        SyncGroupRequestAssignment(member_id=member.member_id, assignment=_ASSIGNMENT)
                        for member in joined.members
                    ],
                )
            )
            if synced.error_code:
                continue
            self._generations[number] = joined.generation_id
            if len(self._generations) == self._size and len(set(self._generations.values())) == 1:
                self._stable.set()
            heartbeat = HeartbeatRequest(group_id=self._id, generation_id=joined.generation_id, member_id=member_id)
            while True:
                await trio.sleep(_HEARTBEAT_S)
                if (await connection.call(heartbeat)).error_code:
                    break

    async def _join(self, connection: Connection, member_id: str) -> JoinGroupResponse:
        response: JoinGroupResponse = await connection.call(
            JoinGroupRequest(
                group_id=self._id,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=60_000,
                member_id=member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=_SUBSCRIPTION)],
            )
        )
        return response


def rebalance(size: int) -> OnBroker:
    """A group of `size` members that come at once, until all have their assignments."""

    def measure(broker: Any) -> Figures:
        trio.run(_Group(broker, "warm-up", size).run)
        before = cpu_seconds(broker.pid)
        seconds = [trio.run(_Group(broker, f"group-{number}", size).run) for number in range(_GROUPS)]
        spent = cpu_seconds(broker.pid) - before
        return {"s until stable": statistics.median(seconds), "CPU ms per member": spent * 1000 / (_GROUPS * size)}

    return measure


def stall(groups: int, size: int) -> OnBroker:
    """How long others wait while `groups` groups of `size` members form at once: the slowest of their requests."""

    def measure(broker: Any) -> Figures:
        async def form() -> float:
            seconds: list[float] = []

            async def one(number: int) -> None:
                seconds.append(await _Group(broker, f"stall-{number}", size).run())

            async with trio.open_nursery() as nursery:
                for number in range(groups):
                    nursery.start_soon(one, number)
            return max(seconds)

        with watching(broker.bootstrap) as waits:
            before = cpu_seconds(broker.pid)
            seconds = trio.run(form)
            spent = cpu_seconds(broker.pid) - before
        return {
            "s until stable": seconds,
            "CPU s": spent,
            "ms p99 of another's request": waits.p99,
            "ms longest": waits.longest,
        }

    return measure


def commits(seconds: float = 3.0) -> OnBroker:
    """One consumer that commits, waits for the answer, and commits again."""

    def measure(broker: Any) -> Figures:
        from confluent_kafka import Consumer, TopicPartition

        create_topic(broker.bootstrap, "committed", 1)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "commits", "enable.auto.commit": False})
        try:
            offset = TopicPartition("committed", 0, 0)
            _until_coordinated(lambda: consumer.commit(offsets=[offset], asynchronous=False))
            for _ in range(_WARM_UP):
                consumer.commit(offsets=[offset], asynchronous=False)
            count, before, started = 0, cpu_seconds(broker.pid), time.perf_counter()
            while (spent := time.perf_counter() - started) < seconds:
                consumer.commit(offsets=[offset], asynchronous=False)
                count += 1
            return {
                "commits/s": count / spent,
                "CPU ms per commit": (cpu_seconds(broker.pid) - before) * 1000 / count,
            }
        finally:
            consumer.close()

    return measure


def _until_coordinated(commit: Callable[[], object]) -> None:
    """Commits once. Apache Kafka names a coordinator before that has made its topic its own."""
    from confluent_kafka import KafkaError, KafkaException

    passing = {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
    deadline = time.monotonic() + _GIVE_UP_S
    while True:
        try:
            commit()
            return
        except KafkaException as error:
            if error.args[0].code() not in passing or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def transactions(records: int, seconds: float = 3.0) -> OnBroker:
    """One producer whose transactions have `records` records of 100 bytes each."""

    def measure(broker: Any) -> Figures:
        from confluent_kafka import Producer

        create_topic(broker.bootstrap, "transactions", 1)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "benchmark", "linger.ms": 0})
        producer.init_transactions(30)
        value = bytes(_SIZE)

        def one() -> None:
            producer.begin_transaction()
            for _ in range(records):
                producer.produce("transactions", value)
            producer.commit_transaction(30)

        for _ in range(_WARM_UP // 4):
            one()
        count, before, started = 0, cpu_seconds(broker.pid), time.perf_counter()
        while (spent := time.perf_counter() - started) < seconds:
            one()
            count += 1
        return _of_transactions(count / spent, cpu_seconds(broker.pid) - before, count, records)

    return measure


def java_transactions(records: int, seconds: float = 3.0, warm_up: int = 2 * _WARM_UP) -> OnBroker:
    """The same with the Java client, whose transactions are those of transaction version 2."""

    def measure(broker: Any) -> Figures:
        create_topic(broker.bootstrap, "transactions", 1)
        with tempfile.TemporaryDirectory() as folder:
            program = programs.command([_TRANSACTIONS], apache_kafka.class_path(), Path(folder))
            load = ["transactions", str(records), str(warm_up), str(seconds)]
            command = [*program, _TRANSACTIONS.stem, broker.bootstrap, *load]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                process.stdout.readline()  # it is warm
                before = cpu_seconds(broker.pid)
                printed, _ = process.communicate("go\n", timeout=_GIVE_UP_S)
                spent = cpu_seconds(broker.pid) - before
        if process.returncode:
            raise RuntimeError(f"{_TRANSACTIONS.name} ended with {process.returncode}")
        rate, count = printed.split()
        return _of_transactions(float(rate), spent, int(count), records)

    return measure


def _of_transactions(rate: float, cpu: float, count: int, records: int) -> Figures:
    """`cpu` seconds are those of `count` transactions of `records` records each."""
    return {
        "transactions/s": rate,
        "CPU ms per transaction": cpu * 1000 / count,
        **cost(cpu, count * records, _SIZE),
    }


def exactly_once_copy(count: int = 300) -> OnBroker:
    """From the producing of a record to its arrival at a read_committed consumer, copied in a transaction between."""

    def measure(broker: Any) -> Figures:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

        for topic in ("copy-from", "copy-to"):
            create_topic(broker.bootstrap, topic, 1)
        servers = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0}
        reading = {
            "bootstrap.servers": broker.bootstrap,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 500,
        }
        source = Producer(servers)
        copier_in = Consumer({**reading, "group.id": "copier"})
        copier_out = Producer({**servers, "transactional.id": "copier"})
        sink = Consumer({**reading, "group.id": "sink"})
        copier_in.assign([TopicPartition("copy-from", 0, OFFSET_BEGINNING)])
        sink.assign([TopicPartition("copy-to", 0, OFFSET_BEGINNING)])
        copier_out.init_transactions(30)
        waits = []
        before = cpu_seconds(broker.pid)
        try:
            for number in range(count):
                started = time.perf_counter()
                source.produce("copy-from", b"%d" % number)
                source.flush(10)
                message = _next(copier_in)
                copier_out.begin_transaction()
                copier_out.produce("copy-to", message.value())
                offsets = [TopicPartition("copy-from", 0, message.offset() + 1)]
                copier_out.send_offsets_to_transaction(offsets, copier_in.consumer_group_metadata(), 30)
                copier_out.commit_transaction(30)
                if _next(sink).value() != b"%d" % number:
                    raise RuntimeError("the copy is not the original")
                waits.append((time.perf_counter() - started) * 1000)
            spent = cpu_seconds(broker.pid) - before
        finally:
            copier_in.close()
            sink.close()
        waits = sorted(waits[count // 10 :])
        return {
            "ms p50": statistics.median(waits),
            "ms p99": quantile(waits, 0.99),
            "CPU ms per copy": spent * 1000 / count,
        }

    return measure


def _next(consumer: Any) -> Any:
    message = consumer.poll(30)
    if message is None or message.error() is not None:
        raise RuntimeError(f"no record came: {message and message.error()}")
    return message


def steps() -> list[Step]:
    """In the order in which they are told."""
    measures: dict[str, OnBroker] = {
        "rebalance, 10 members": rebalance(10),
        "rebalance, 100 members": rebalance(100),
        "commits": commits(),
        "transactions of 1 record": transactions(1),
        "transactions of 100 records": transactions(100),
        "transactions of 1 record, Java": java_transactions(1),
        "transactions of 100 records, Java": java_transactions(100),
        "exactly-once copy": exactly_once_copy(),
        "others, while 1 group of 1,000 members forms": stall(1, 1000),
        "others, while 1,000 groups of 1 member form": stall(1000, 1),
    }
    return [Step(f"coordinators: {name}", fresh(measure, NO_DELAY)) for name, measure in measures.items()]
