"""What follows for the broker when a log dir fails: its partitions are led by others or by nobody, and with the last
dir the broker ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from kwire.cluster.lost_logs import missing_dirs, settle_leaders
from kwire.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kwire.broker.broker import Broker

logger = logging.getLogger(__name__)


class LogDirsFailed(Exception):
    """No log dir is left; one line that says why and what to do."""


class LogDirs:
    """Of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._failed = trio.Event()
        broker.replicas.on_dir_failed = lambda: self._failed.set()

    def to_register(self) -> tuple[bytes, ...]:
        """At a start: the ids of the log dirs with which the broker registers.

        Where something is missed, those that were there at the last start and are not stay among them, and others that
        were not there are none of them yet: they may be what lies below the missing ones.
        """
        broker, logs = self._broker, self._broker.logs
        present = [log_dir.id for log_dir in logs.online_dirs]
        topics = broker.store.image.topics

        def has_log(topic: str, index: int) -> bool:
            log = logs.get(topic, index)
            return log is not None and log.topic_id in (None, topics[topic].id)  # else it is of an earlier topic

        missing = missing_dirs(broker.store.image, broker.id, present, has_log)
        logs.dir_is_missing = bool(missing)
        if missing:
            logs.doubtful = set(present).difference(broker.store.image.brokers[broker.id].log_dirs)
        return (*(log_dir for log_dir in present if log_dir not in logs.doubtful), *missing)

    async def run(self) -> None:
        """Follows what happens to the log dirs, until cancelled. Raises LogDirsFailed."""
        while True:
            if not self._broker.logs.online_dirs:
                reasons = "; ".join(log_dir.offline_reason or "" for log_dir in self._broker.logs.dirs)
                raise LogDirsFailed(f"all log dirs have failed, the broker ends: {reasons}")
            await self._failed.wait()
            self._failed = trio.Event()
            await self.settle()

    async def settle(self) -> None:
        """Tells the cluster which partitions this broker can lead, as far as that is not what the metadata say."""
        broker = self._broker
        partitions = broker.replicas.partitions

        def has_log(topic: str, index: int) -> bool:
            partition = partitions.get((topic, index))
            return partition is None or partition.log is not None

        try:
            await broker.controller.decide(lambda image: (None, settle_leaders(image, broker.id, has_log)))
        except KafkaError as error:
            logger.warning("who leads the partitions of the log dirs that failed can't be changed: %s", error)
