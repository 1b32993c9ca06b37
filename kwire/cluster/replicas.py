"""All partitions of this broker: what the metadata say becomes logs, roles and fetchers.

`apply` is the metadata store's subscriber. It looks at the topics whose image is another object than before, and in
these at the partitions whose image is; so one change among 10,000 partitions costs little more than itself.

    manager = ReplicaManager(config, store, logs, clock, transport)
    await manager.start(store.image)             the logs are loaded; afterwards `partition` finds what there is
    store.subscribe(manager.apply)
    await manager.run()                          in a task: fetchers, ISR changes, the look for lagging followers
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

import trio

from kwire.cluster.fetcher import FetchSettings
from kwire.cluster.fetchers import Fetchers
from kwire.cluster.isr import ANY_EPOCH, IsrUpdater
from kwire.cluster.leaderships import LeadershipListener, Leaderships
from kwire.cluster.log_opening import Arrival, LogOpening, shown
from kwire.cluster.partition import Partition
from kwire.cluster.replica import NO_SUCH_PARTITION
from kwire.config.broker import BrokerConfig
from kwire.config.topic import LogConfig
from kwire.metadata.image import NO_LEADER, BrokerImage, Endpoint, MetadataImage, PartitionImage, TopicImage
from kwire.metadata.store import MetadataStore
from kwire.ports.clock import Clock
from kwire.ports.transport import Transport
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.log import Log
from kwire.storage.log_dir import LogDir
from kwire.storage.manager import LogManager

logger = logging.getLogger(__name__)


class ReplicaManager:
    """The partitions of one broker."""

    def __init__(
        self, config: BrokerConfig, store: MetadataStore, logs: LogManager, clock: Clock, transport: Transport
    ) -> None:
        self.broker_id: int = config.broker_id
        self.brokers: Mapping[int, BrokerImage] = {}
        """Of the newest image."""
        self.max_lag_ms: int = config["replica.lag.time.max.ms"]
        self.partitions: dict[tuple[str, int], Partition] = {}
        """By topic name and partition number; not to be changed by others."""
        self._replicated: dict[tuple[str, int], Partition] = {}
        """Those with other replicas: for the others, of which there may be thousands, nobody is out of sync."""
        self.on_dir_failed: Callable[[], None] | None = None
        """Called on the event loop when a log dir has failed, and the partitions know it."""
        self._config = config
        self._store = store
        self._image = MetadataImage()
        self._logs = logs
        self._clock = clock
        self.listener: str = config["inter.broker.listener.name"] or config["security.inter.broker.protocol"]
        """By which brokers reach each other."""
        self._opening = LogOpening(self.broker_id, logs, clock)
        self._leaderships = Leaderships()
        self._isr = IsrUpdater(store, self.broker_id)
        self.propose_isr = self._isr.submit
        self._fetchers = Fetchers(
            transport,
            self.endpoint,
            FetchSettings(
                self.broker_id,
                self._broker_epoch,
                config["replica.fetch.wait.max.ms"],
                config["replica.fetch.min.bytes"],
                config["replica.fetch.response.max.bytes"],
                config["replica.fetch.max.bytes"],
                config["replica.fetch.backoff.ms"],
                config["replica.socket.timeout.ms"],
            ),
        )

    def now_ms(self) -> int:
        """On a monotonic clock."""
        return int(self._clock.monotonic() * 1000)

    def partition(self, topic: str, index: int) -> Partition:
        """The partition; its own methods tell whether it can serve.

        Raises UNKNOWN_TOPIC_OR_PARTITION; NOT_LEADER_OR_FOLLOWER where it exists but this broker is no replica of it.
        """
        found = self.partitions.get((topic, index))
        if found is None:
            if self._image.partition(topic, index) is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION)
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"Broker {self.broker_id} is no replica of {topic}-{index}"
            )
        return found

    def listen(self, topic: str, listener: LeadershipListener) -> None:
        """Tells the listener which partitions of the topic this broker leads: now, and whenever that changes."""
        self._leaderships.listen(topic, listener)
        for partition in self.partitions.values():
            if partition.topic == topic:
                self._leaderships.look(partition)

    # Following the metadata

    async def start(self, image: MetadataImage) -> None:
        """Takes over the first image: takes all roles, and sets logs aside whose partitions are not here any more.

        When it returns, the store has no newer image: whoever subscribes `apply` now misses nothing.
        """
        self._logs.on_offline = self._dir_failed
        strays = []
        for log in self._logs.logs.values():
            topic = image.topics.get(log.topic)
            here = topic is not None and log.topic_id in (None, topic.id) and log.partition < len(topic.partitions)
            if topic is None or not here or self.broker_id not in topic.partitions[log.partition].replicas:
                strays.append(log.key)
        if strays:
            names = [f"{name}-{index}" for name, index in strays]
            logger.warning("set aside, since the cluster knows them no more: the logs of %s", shown(names))
        await self._logs.set_aside(strays)
        await self._apply(MetadataImage(), image, starting=True)
        while self._store.image is not self._image:  # others committed meanwhile
            await self._apply(self._image, self._store.image, starting=False)

    async def apply(self, old: MetadataImage, new: MetadataImage) -> None:
        """Follows a change of the metadata; when it returns, what was created can be used."""
        await self._apply(old, new, starting=False)

    async def _apply(self, old: MetadataImage, new: MetadataImage, *, starting: bool) -> None:
        self._image = new
        self.brokers = new.brokers
        if new.topics is not old.topics:
            await self._depart(old, new)
            arrivals = [arrival async for arrival in self._arrivals(old, new, starting)]
            await self._opening.open(arrivals, self._log_config, starting=starting)
            turn = Turn(self._clock)
            for arrival in arrivals:
                await self._give_role(arrival.partition, arrival.state)
                await turn.share()
        if new.configs is not old.configs and not starting:
            self._follow_configs(old, new)

    async def _depart(self, old: MetadataImage, new: MetadataImage) -> None:
        """Ends the partitions that are deleted, and those that moved to other brokers."""
        turn = Turn(self._clock)
        gone: dict[tuple[str, int], bool] = {}
        """To whether the topic is deleted."""
        for name, before in old.topics.items():
            after = new.topics.get(name)
            if after is before:
                continue
            for index, was in enumerate(before.partitions):
                if self.broker_id not in was.replicas:
                    continue
                if after is None or after.id != before.id:
                    gone[name, index] = True
                elif self.broker_id not in after.partitions[index].replicas:
                    gone[name, index] = False
        for key, deleted in gone.items():
            partition = self.partitions.pop(key, None)
            self._replicated.pop(key, None)
            if partition is not None:
                self._fetchers.leave(partition)
                await partition.retire(deleted=deleted)
                self._leaderships.look(partition)
                await turn.share()
        try:
            await self._logs.delete(gone)
        except KafkaError as error:
            logger.warning("not all logs of deleted partitions could be removed: %s", error)

    async def _arrivals(self, old: MetadataImage, new: MetadataImage, starting: bool) -> AsyncIterator[Arrival]:
        turn = Turn(self._clock)
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if topic is before:
                continue
            known = before.partitions if before is not None and before.id == topic.id else ()
            for index, state in enumerate(topic.partitions):
                is_new = index >= len(known)
                if (is_new or state is not known[index]) and self.broker_id in state.replicas:
                    yield Arrival(self._partition_of(topic, index), state, is_new and not starting)
                    await turn.share()

    def _partition_of(self, topic: TopicImage, index: int) -> Partition:
        return self.partitions.get((topic.name, index)) or Partition(topic.name, index, topic.id, self)

    async def _give_role(self, partition: Partition, state: PartitionImage) -> None:
        follows = state.leader not in (self.broker_id, NO_LEADER)
        if not follows:
            self._fetchers.leave(partition)
        # A dir may fail while the logs of other partitions are made, or now: `_dir_failed` knows none of them yet.
        self._drop_lost(partition)
        new_epoch = await partition.take_role(state)
        self._drop_lost(partition)
        key = (partition.topic, partition.index) if partition.log is None else partition.log.key
        self.partitions[key] = partition
        if len(state.replicas) > 1:
            self._replicated[key] = partition
        else:
            self._replicated.pop(key, None)
        self._leaderships.look(partition)
        if follows and new_epoch and partition.log is not None:
            self._fetchers.follow(partition, state.leader)

    @staticmethod
    def _drop_lost(partition: Partition) -> None:
        if partition.log is not None and not partition.log.log_dir.online:
            partition.lose_log()

    # Configurations

    def reconfigure(self, config: BrokerConfig) -> None:
        """Takes over the broker's configuration, of which the topics' defaults come."""
        if config is not self._config:
            self._config = config
            self._configure(self.partitions.values())

    def _follow_configs(self, old: MetadataImage, new: MetadataImage) -> None:
        changed = {
            name
            for kind, name in (*old.configs, *new.configs)
            if kind == "topic" and old.config(kind, name) is not new.config(kind, name)
        }
        for name in changed:
            topic = new.topics.get(name)
            count = 0 if topic is None else len(topic.partitions)
            found = (self.partitions.get((name, index)) for index in range(count))
            self._configure(partition for partition in found if partition is not None)

    def _configure(self, partitions: Iterable[Partition]) -> None:
        configs: dict[str, LogConfig] = {}
        for partition in partitions:
            config = configs.get(partition.topic)
            if config is None:
                config = configs[partition.topic] = self._log_config(partition.topic)
            partition.configure(config)

    def _log_config(self, topic: str) -> LogConfig:
        return LogConfig.of(self._config, self._image.config("topic", topic))

    # Around the partitions

    def _dir_failed(self, log_dir: LogDir, gone: list[Log]) -> None:
        for log in gone:
            partition = self.partitions.get(log.key)
            if partition is not None:
                self._fetchers.leave(partition)
                partition.lose_log()
                self._leaderships.look(partition)
        if self.on_dir_failed is not None:
            self.on_dir_failed()

    def endpoint(self, broker_id: int) -> Endpoint | None:
        """Where other brokers reach that one; None while it is not known or fenced."""
        broker = self.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.endpoint(self.listener)

    def _broker_epoch(self) -> int:
        broker = self.brokers.get(self.broker_id)
        return ANY_EPOCH if broker is None else broker.epoch

    async def run(self) -> None:
        """Fetches for the partitions followed, and looks after the ISR of those led, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._fetchers.run)
            nursery.start_soon(self._isr.run)
            nursery.start_soon(self._shrink_isrs)

    async def _shrink_isrs(self) -> None:
        while True:
            await trio.sleep(self.max_lag_ms / 2000)
            await self._shrink_each()

    async def _shrink_each(self) -> None:
        """(Apart, since while `_shrink_isrs` sleeps it would have the last of the partitions.)"""
        turn = Turn(self._clock)
        for partition in list(self._replicated.values()):
            if partition.leadership is not None:
                partition.leadership.shrink_isr()
            await turn.share()
