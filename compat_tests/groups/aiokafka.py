"""aiokafka, on a loop of its own that runs while it polls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from compat_tests.groups.consumer import GroupConsumer, Settings


class Consumer(GroupConsumer):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._loop = asyncio.new_event_loop()
        self._later: set[asyncio.Task[Any]] = set()
        self._consumer: Any = None
        self._loop.run_until_complete(self._start())

    async def _start(self) -> None:
        settings = self.settings
        self._consumer = AIOKafkaConsumer(
            settings.topic,
            bootstrap_servers=settings.bootstrap,
            group_id=settings.group,
            group_instance_id=settings.instance_id,
            auto_offset_reset="earliest",
            enable_auto_commit=settings.auto_commit,
            auto_commit_interval_ms=200,
            session_timeout_ms=settings.session_ms,
            heartbeat_interval_ms=200,
        )
        await self._consumer.start()

    def poll(self) -> Iterator[tuple[int, int, bytes]]:
        found = self._loop.run_until_complete(self._consumer.getmany(timeout_ms=100))
        for records in found.values():
            for record in records:
                yield record.partition, record.offset, record.value

    def assigned(self) -> set[int]:
        return {place.partition for place in self._consumer.assignment()}

    def commit(self) -> None:
        self._loop.run_until_complete(self._consumer.commit())

    def commit_later(self) -> None:
        task = self._loop.create_task(self._consumer.commit())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    def pause(self, partition: int) -> None:
        self._in_loop(self._consumer.pause, TopicPartition(self.settings.topic, partition))

    def resume(self, partition: int) -> None:
        self._in_loop(self._consumer.resume, TopicPartition(self.settings.topic, partition))

    def seek(self, partition: int, offset: int) -> None:
        self._in_loop(self._consumer.seek, TopicPartition(self.settings.topic, partition), offset)

    def _in_loop(self, call: Callable[..., None], *arguments: Any) -> None:
        async def called() -> None:
            call(*arguments)

        self._loop.run_until_complete(called())

    def close(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())
