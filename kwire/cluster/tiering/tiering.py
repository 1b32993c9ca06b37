"""Tiered storage on one broker: what goes on beside the requests, and what requests ask of it.

tiering = Tiering(...)
await tiering.run()                        in a task: `__remote_log_metadata`, copies, expiry, removals
await tiering.reads.fetch(partition, …)    what is not here any more
await tiering.mark_deleted(topics)         before topics are deleted
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import trio

from kwire.cluster.controller import Controller
from kwire.cluster.internal_topics import remote_log_metadata
from kwire.cluster.tiering.copier import Copier
from kwire.cluster.tiering.metadata import RemoteLogMetadata, partition_of
from kwire.cluster.tiering.reads import RemoteReads, identity
from kwire.cluster.tiering.remover import Remover
from kwire.cluster.tiering.rounds import Rounds
from kwire.cluster.tiering.settings import TieringSettings
from kwire.config.topic_keys import TOPIC_KEYS
from kwire.metadata.image import MetadataImage, TopicImage
from kwire.metadata.names import REMOTE_LOG_METADATA
from kwire.metadata.store import MetadataStore
from kwire.ports.randomness import Randomness
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.remote.object_store import ObjectStore
from kwire.storage.log_dir import LogDir
from kwire.storage.services import StorageServices
from kwire.storage.throttle import Throttle
from kwire.storage.tiered.account import DeleteState
from kwire.storage.tiered.chunks import ChunkCache
from kwire.storage.tiered.expiring import Retention, expire
from kwire.storage.tiered.index_cache import IndexCache
from kwire.storage.tiered.remote_reading import RemoteReader
from kwire.storage.tiered.remote_segment import TopicIdPartition
from kwire.storage.tiered.remote_segments import RemoteSegments
from kwire.storage.tiered.uploading import copied_end

if TYPE_CHECKING:
    from kwire.cluster.partition import Partition
    from kwire.cluster.replicas import ReplicaManager
    from kwire.storage.log import Log

logger = logging.getLogger(__name__)

_SAYING = frozenset({"remote.storage.enable", "remote.log.delete.on.disable"})
"""The configs of a topic that may have something in remote storage; the broker gives no defaults for them."""


class Tiering:
    """For the event loop's thread."""

    def __init__(
        self,
        settings: TieringSettings,
        store: MetadataStore,
        controller: Controller,
        replicas: ReplicaManager,
        services: StorageServices,
        objects: ObjectStore,
        index_dir: LogDir,
        randomness: Randomness,
        spawn: Callable[..., None],
    ) -> None:
        """`objects` is the object store, `index_dir` is where the cache of indexes lies.

        `spawn` starts a task that lives as long as the broker.
        """
        self._settings = settings
        self._store = store
        self._controller = controller
        self._replicas = replicas
        self._randomness = randomness
        self._spawn = spawn
        self._readers = trio.CapacityLimiter(settings.readers)
        self._metadata = RemoteLogMetadata(services.clock, replicas.broker_id, settings.publish_within_s)
        self._chunks = ChunkCache(
            objects,
            self._readers,
            spawn,
            chunk_bytes=settings.chunk_bytes,
            cache_bytes=settings.chunk_cache_bytes,
            ahead_bytes=settings.ahead_bytes,
            keep_s=settings.chunks_kept_s,
        )
        self._indexes = IndexCache(
            services, objects, self._readers, index_dir, lambda: settings.index_bytes, settings.index_ttl_ms
        )
        self._remover = Remover(self._metadata, objects, self._chunks)
        self._copier = Copier(
            self._metadata,
            objects,
            self._remover,
            Throttle(services.clock, lambda: settings.copy_rate),
            services.clock,
            replicas.broker_id,
            randomness.uuid,
        )
        self._clock = services.clock
        reader = RemoteReader(self._chunks, self._indexes, services.executor)
        self.reads = RemoteReads(
            self._metadata, reader, settings, Throttle(services.clock, lambda: settings.fetch_rate), spawn
        )

    async def run(self) -> None:
        """Until cancelled."""
        await self._indexes.open()
        await self._make_topic()
        self.follow(self._store.image)
        self._replicas.listen(REMOTE_LOG_METADATA, self._metadata)
        settings = self._settings
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._metadata.run)
            nursery.start_soon(self._chunks.run)
            for rounds in (
                Rounds("copies", self._tiered, self._copier.copy, identity, lambda: settings.copiers),
                Rounds("clean-up", self._led, self._clean_up, identity, lambda: settings.expirers),
                Rounds("removal", self._removable, self._remove_all, lambda of: of, lambda: settings.expirers),
            ):
                nursery.start_soon(rounds.run, settings, self._randomness)

    def follow(self, image: MetadataImage) -> None:
        """Takes over how many partitions `__remote_log_metadata` has, and how many readers there may be."""
        self._readers.total_tokens = self._settings.readers
        topic = image.topics.get(REMOTE_LOG_METADATA)
        self._metadata.topic_partitions = 0 if topic is None else len(topic.partitions)

    async def _make_topic(self) -> None:
        while REMOTE_LOG_METADATA not in self._store.image.topics:
            try:
                await self._controller.create_internal_topic(lambda _: remote_log_metadata(self._settings.metadata))
            except KafkaError as error:
                logger.error("%s can't be created, nothing is tiered until it can: %s", REMOTE_LOG_METADATA, error)
                await trio.sleep(self._settings.task_interval_s)

    def known(self) -> Iterator[tuple[TopicIdPartition, RemoteSegments]]:
        """What lies in remote storage, of the partitions whose records this broker keeps."""
        return self._metadata.known()

    # What there is to do

    def _led(self) -> Iterator[Partition]:
        """The partitions of which this broker may have something to tidy up in remote storage."""
        image = self._store.image
        for (kind, name), configs in image.configs.items():
            topic = image.topics.get(name) if kind == "topic" and _SAYING.intersection(configs) else None
            for found in () if topic is None or name == REMOTE_LOG_METADATA else self._here(topic):
                log = found.log
                if log is not None and found.is_leader and (log.tiered or log.config.remote_log_delete_on_disable):
                    yield found

    def _tiered(self) -> Iterator[Partition]:
        for found in self._led():
            if found.log is not None and found.log.tiered:
                yield found

    def _removable(self) -> Iterator[TopicIdPartition]:
        """The partitions whose topics are deleted, once nothing of them is being copied."""
        topics = {topic.id for topic in self._store.image.topics.values()}
        for of, _ in self._metadata.deleted():
            if of.topic_id not in topics and of not in self._copier.copying:
                yield of

    # Expiry and removal

    async def _clean_up(self, partition: Partition) -> None:
        """What has expired, what was left behind by a crash; all of it where remote storage was switched off."""
        log, of = partition.log, identity(partition)
        if log is None:
            return
        if not log.tiered:
            await self._empty(partition, log)
            return
        segments = self._copier.adopt(partition)
        if segments is None:
            return
        # A copy may be finished of which the copier has not heard yet: it must not count twice.
        copied = copied_end(log, segments, log.tiered_end_offset)
        only_local = sum(segment.size for segment in log.segments if segment.base_offset >= copied)
        retention = Retention(
            log.config.retention_ms,
            log.config.retention_bytes,
            self._clock.wall_ms(),
            log.log_start_offset,
            only_local,
        )
        expiry = expire(segments, log.epochs.entries(), retention, self._copier.under_way)
        if expiry.log_start_offset is not None:
            self._advance(partition, log, expiry.log_start_offset)
        for segment in expiry.doomed:
            await self._remover.remove(of, segment)
        # Where copies were switched off, the local log may begin far behind what is left there.
        left = next(segments.readable(log.epochs.entries(), log.log_start_offset), None)
        if left is None and self._metadata.mentions(of):
            self._advance(partition, log, log.local_start_offset)

    def _advance(self, partition: Partition, log: Log, offset: int) -> None:
        log.advance_log_start(min(offset, log.high_watermark))

    async def _empty(self, partition: Partition, log: Log) -> None:
        of = identity(partition)
        segments = self._metadata.segments(of)
        if not segments or of in self._copier.copying:
            return
        self._advance(partition, log, log.local_start_offset)
        log.tiered_end_offset = 0
        self._copier.forget(of)
        # To the end, though remote storage is switched on again meanwhile: half of the copies are no use.
        self._copier.emptying.add(of)
        try:
            for segment in segments:
                await self._remover.remove(of, segment)
        finally:
            self._copier.emptying.discard(of)

    async def mark_deleted(self, topics: Iterable[TopicImage]) -> dict[bytes, KafkaError]:
        """Says that these topics are about to be deleted, so that what is in remote storage of them will be too.

        To be called before their deletion is committed: a mark of a topic that is still there means nothing. Returns by
        its id why a topic must not be deleted, since that could not be written: KAFKA_STORAGE_ERROR where it would
        stand in a log dir that is offline or gone. Without it the objects would stay for ever.
        """
        refused: dict[bytes, KafkaError] = {}
        for topic in topics:
            failures: list[KafkaError] = []
            of_all = set(self._metadata.partitions_of(topic.id))
            if self._copied(topic):
                of_all.update(TopicIdPartition(topic.name, topic.id, index) for index in range(len(topic.partitions)))
            # A copy may begin at any moment: those without any are marked too. Together they need a few fsyncs.
            async with trio.open_nursery() as nursery:
                for of in of_all:
                    nursery.start_soon(self._mark, of, failures)
            if failures:
                refused[topic.id] = failures[0]
        return refused

    def _copied(self, topic: TopicImage) -> bool:
        """Whether segments of it are copied; of a partition whose log is lost only the topic's config can tell."""
        key = "remote.storage.enable"
        enabled = TOPIC_KEYS[key].parse(self._store.image.config("topic", topic.name).get(key, "false"))
        return any(enabled if found.log is None else found.log.tiered for found in self._here(topic))

    async def _mark(self, of: TopicIdPartition, failures: list[KafkaError]) -> None:
        try:
            self._check_not_lost(of)
            await self._metadata.delete_partition(of, DeleteState.DELETE_PARTITION_MARKED)
        except KafkaError as error:
            failures.append(error)

    def _check_not_lost(self, of: TopicIdPartition) -> None:
        """Raises KAFKA_STORAGE_ERROR where this broker has lost what is said of the partition's copies."""
        count = self._metadata.topic_partitions
        found = self._replicas.partitions.get((REMOTE_LOG_METADATA, partition_of(of, count))) if count else None
        if found is not None and found.log is None:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"What is known of {of} in remote storage is in {found.name}, whose log dir is offline or gone: "
                "bring it back, or switch off the topic's remote storage first, and its objects stay there for ever",
            )

    def _here(self, topic: TopicImage) -> Iterator[Partition]:
        for index in range(len(topic.partitions)):
            found = self._replicas.partitions.get((topic.name, index))
            if found is not None:
                yield found

    async def _remove_all(self, of: TopicIdPartition) -> None:
        """Deletes all copies of a partition whose topic is deleted."""
        self._copier.forget(of)
        segments = self._metadata.segments(of)
        if segments is None:
            return
        await self._metadata.delete_partition(of, DeleteState.DELETE_PARTITION_STARTED)
        for segment in segments:
            await self._remover.remove(of, segment)
        await self._metadata.delete_partition(of, DeleteState.DELETE_PARTITION_FINISHED)
        logger.info("removed what was in remote storage of %s, which is deleted", of)
