"""kwire's own client, each call in a Trio run of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio

from compat_tests.driver import TIMEOUT, Bounds, Driver, Reading, Received, Record, Refused, Sending
from kwire.client.addresses import parse_bootstrap
from kwire.client.client import Client
from kwire.client.consumer import Consumer
from kwire.client.errors import ClientError
from kwire.client.offsets import EARLIEST, LATEST, list_offsets
from kwire.client.producer import Produced, Producer
from kwire.ports.tcp import TcpTransport
from kwire.protocol import records
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.compression import Compression

T = TypeVar("T")
ACKS = {"0": 0, "1": 1, "all": -1}


class KwireDriver(Driver):
    """The client takes any bytes, any headers and any timestamps."""

    def _run(self, use: Callable[[Client], Awaitable[T]], patience: float = TIMEOUT) -> T:
        async def main() -> T:
            transport = TcpTransport()
            async with Client(transport, parse_bootstrap(self.bootstrap), retry_timeout=patience) as client:
                return await use(client)

        try:
            return trio.run(main)
        except KafkaError as error:
            raise Refused(error.code, str(error)) from error
        except ClientError as error:
            raise Refused(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error

    def _produce(self, topic: str, records: Sequence[Record], how: Sending) -> list[int]:
        offsets: dict[int, list[int]] = {}

        def note(partition: tuple[str, int], batch: Sequence[records.record.Record], produced: Produced) -> None:
            known = produced.offset >= 0
            offsets.setdefault(partition[1], []).extend(produced.offset + i if known else -1 for i in range(len(batch)))

        async def produce(client: Client) -> None:
            producer = Producer(
                client,
                acks=ACKS[how.acks],
                compression=Compression[how.compression.upper()],
                idempotent=how.idempotent,
                on_delivery=note,
            )
            for record in records:
                await producer.send(
                    topic,
                    record.value,
                    key=record.key,
                    headers=record.headers,
                    timestamp=record.timestamp,
                    partition=record.partition,
                )
            await producer.flush()

        self._run(produce, how.patience)
        return [offsets[record.partition].pop(0) for record in records]

    def _consume(self, topic: str, count: int, how: Reading) -> list[Received]:
        received: list[Received] = []

        async def consume(client: Client) -> None:
            consumer = Consumer(client)
            await consumer.assign({(topic, partition): start for partition, start in how.starts.items()})
            while len(received) < count:
                try:
                    polled = await consumer.poll()
                except KafkaError as error:
                    if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE or how.reset == "none":
                        raise
                    spec = EARLIEST if how.reset == "earliest" else LATEST
                    found = await list_offsets(client, dict.fromkeys(consumer.positions, spec))
                    await consumer.assign({partition: answer.offset for partition, answer in found.items()})
                    continue
                received.extend(
                    Received(
                        record.key,
                        record.value,
                        tuple(record.headers),
                        record.timestamp,
                        record.partition,
                        record.offset,
                        record.log_append_time,
                    )
                    for record in polled
                )

        async def consume_in_time(client: Client) -> None:
            with trio.move_on_after(how.timeout):
                await consume(client)

        self._run(consume_in_time)
        return received[:count]

    def bounds(self, topic: str, partition: int = 0) -> Bounds:
        return Bounds(self._listed(topic, EARLIEST, partition), self._listed(topic, LATEST, partition))

    def offset_at(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        offset = self._listed(topic, timestamp, partition)
        return None if offset < 0 else offset

    def _listed(self, topic: str, timestamp: int, partition: int) -> int:
        async def ask(client: Client) -> int:
            return (await list_offsets(client, {(topic, partition): timestamp}))[topic, partition].offset

        return self._run(ask)
