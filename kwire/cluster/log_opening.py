"""The logs of partitions that come to this broker: found in its log dirs, made, or lost with a log dir."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import trio

from kwire.cluster.partition import Partition
from kwire.config.topic import LogConfig
from kwire.metadata.image import NO_LEADER, PartitionImage
from kwire.ports.clock import Clock
from kwire.ports.turns import Turn
from kwire.protocol.errors import KafkaError
from kwire.storage.manager import LogManager

logger = logging.getLogger(__name__)

_PARALLEL = 8
"""Logs made at once: each waits for a worker thread a few times."""

_SHOWN = 5
"""Partitions that one line of the log names."""


class Arrival(NamedTuple):
    """A partition that is new or changed, and its state from now on."""

    partition: Partition
    state: PartitionImage
    is_new: bool
    """Of a topic created just now, or just added to one."""


class LogOpening:
    """Of one broker."""

    def __init__(self, broker_id: int, logs: LogManager, clock: Clock) -> None:
        self._broker_id = broker_id
        self._logs = logs
        self._clock = clock

    async def open(self, arrivals: Sequence[Arrival], config_of: Callable[[str], LogConfig], *, starting: bool) -> None:
        """Gives each partition its log, a few at once; those whose log is lost stay without.

        `config_of` gives the configuration of a topic by its name.
        """
        configs: dict[str, LogConfig] = {}
        places = trio.Semaphore(_PARALLEL)
        failures: dict[str, KafkaError] = {}
        unfound: list[Partition] = []
        lost: list[str] = []
        turn = Turn(self._clock)
        async with trio.open_nursery() as nursery:
            for arrival in arrivals:
                await turn.share()
                partition = arrival.partition
                if partition.log is not None:
                    continue
                if self._lost(arrival):
                    lost.append(partition.name)
                    continue
                config = configs.get(partition.topic)
                if config is None:
                    config = configs[partition.topic] = config_of(partition.topic)
                present = self._logs.get(partition.topic, partition.index)
                if present is not None and present.topic_id == partition.topic_id:
                    partition.take_log(present)
                    present.configure(config)
                else:
                    if present is None and not arrival.is_new and self._broker_id in arrival.state.isr:
                        unfound.append(partition)
                    await places.acquire()
                    nursery.start_soon(self._open_one, arrival, config, places, failures)
        if failures:  # of one dir, most likely: a line for each of its thousands of partitions says no more
            name, error = next(iter(failures.items()))
            logger.error("there is no log for %s; of %s: %s", shown(list(failures)), name, error)
        begun = [partition.name for partition in unfound if partition.log is not None]
        if starting and lost:
            self._tell_lost(lost)
        if begun:
            logger.warning("in no log dir, so that they begin anew, empty: the logs of %s", shown(begun))

    def _lost(self, arrival: Arrival) -> bool:
        """Whether its log was lost with a log dir, and is not back: an empty one in its place would pass for all
        there ever was."""
        state = arrival.state
        if arrival.is_new or self._logs.get(arrival.partition.topic, arrival.partition.index) is not None:
            return False
        if self._logs.all_here:
            return False
        return state.leader == NO_LEADER or self._broker_id in state.isr

    def _tell_lost(self, names: Sequence[str]) -> None:
        dirs = self._logs.dirs
        hints = [f"{log_dir.path} is offline" for log_dir in dirs if not log_dir.online]
        doubtful = [log_dir.path for log_dir in dirs if log_dir.id in self._logs.doubtful]
        hints += [f"is a volume to be mounted at {path}?" for path in doubtful]
        logger.warning(
            "nobody leads %s, whose logs were in a log dir that is gone%s: bring it back, named in log.dirs, and "
            "restart the broker, or delete the topics",
            shown(names),
            f" ({'; '.join(hints)})" if hints else "",
        )

    async def _open_one(
        self, arrival: Arrival, config: LogConfig, places: trio.Semaphore, failures: dict[str, KafkaError]
    ) -> None:
        partition, state = arrival.partition, arrival.state
        try:
            log = await self._logs.get_or_create(
                partition.topic,
                partition.index,
                partition.topic_id,
                config,
                directory=state.directories[state.replicas.index(self._broker_id)] if state.directories else None,
                is_new=arrival.is_new,
            )
            partition.take_log(log)
        except KafkaError as error:
            failures[partition.name] = error
        finally:
            places.release()


def shown(names: Sequence[str]) -> str:
    """The first few, and how many there are besides."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
