"""What changes the metadata on behalf of requests: a decision against the newest image, committed on that condition.

The decisions themselves are pure functions (`kwire.cluster.topics`, `kwire.config.alter`). With the embedded store the
one broker decides; handlers know only this class, so that several brokers can name one of them to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import trio

from kwire.cluster import features, topics
from kwire.cluster.features import FeatureUpdate
from kwire.cluster.topics import Creation, NewPartitions, NewTopic, Result
from kwire.config.broker import BrokerConfig
from kwire.metadata.changes import Change, ProducerIdsReserved
from kwire.metadata.image import MetadataImage
from kwire.metadata.store import MetadataStore, VersionConflict
from kwire.ports.randomness import Randomness
from kwire.protocol.errors import ErrorCode

T = TypeVar("T")


class Controller:
    """Decides and commits. Raises what the store's commit raises (KAFKA_STORAGE_ERROR)."""

    def __init__(
        self,
        store: MetadataStore,
        config: Callable[[], BrokerConfig],
        check_topic_configs: Callable[[Mapping[str, str]], None],
        randomness: Randomness,
    ) -> None:
        """`config()` is the broker's current configuration; `check_topic_configs` raises KafkaError INVALID_CONFIG."""
        self._store = store
        self._config = config
        self._check_topic_configs = check_topic_configs
        self._randomness = randomness
        self._deciding = trio.Lock()

    async def decide(self, decision: Callable[[MetadataImage], tuple[T, Sequence[Change]]]) -> T:
        """Commits what `decision` makes of the newest image; decides anew where another commit came first.

        One decision is under way at a time: of a crowd that decides upon the same image, all but one do it in vain.
        """
        async with self._deciding:
            while True:
                image = self._store.image
                outcome, changes = decision(image)
                if not changes:
                    return outcome
                try:
                    await self._store.commit(changes, expected_version=image.version)
                except VersionConflict:
                    continue
                return outcome

    async def create_topics(self, asked: Sequence[NewTopic], *, validate_only: bool = False) -> list[Result]:
        """A result for each topic. When it returns, the topics created here can be produced to."""
        config = self._config()
        creation = Creation(
            config["num.partitions"],
            config["default.replication.factor"],
            self._check_topic_configs,
            self._randomness,
        )
        return await self._each(lambda image: topics.create_topics(image, asked, creation), validate_only)

    async def create_internal_topic(self, topic: Callable[[BrokerConfig], NewTopic]) -> None:
        """Creates one of `kwire.cluster.internal_topics` where it does not exist; raises what keeps it from being."""
        (result,) = await self.create_topics([topic(self._config())])
        if result.error is not None and result.error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise result.error

    async def delete_topics(self, asked: Sequence[tuple[str | None, bytes]]) -> list[Result]:
        """A result for each topic, by name (the id zero) or by id (the name None)."""
        return await self._each(lambda image: topics.delete_topics(image, asked))

    async def create_partitions(self, asked: Sequence[NewPartitions], *, validate_only: bool = False) -> list[Result]:
        """A result for each topic."""
        return await self._each(lambda image: topics.create_partitions(image, asked, self._randomness), validate_only)

    async def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> None:
        """Sets the levels of all these features, or raises INVALID_UPDATE_VERSION and sets none."""

        def decision(image: MetadataImage) -> tuple[None, Sequence[Change]]:
            change = features.update_features(image, updates)
            return None, [] if change is None or validate_only else [change]

        await self.decide(decision)

    async def reserve_producer_ids(self, count: int) -> int:
        """Durably reserves `count` producer ids; returns the first of them."""

        def decision(image: MetadataImage) -> tuple[int, Sequence[Change]]:
            return image.next_producer_id, [ProducerIdsReserved(image.next_producer_id + count)]

        return await self.decide(decision)

    async def _each(
        self, results_of: Callable[[MetadataImage], list[Result]], validate_only: bool = False
    ) -> list[Result]:
        def decision(image: MetadataImage) -> tuple[list[Result], Sequence[Change]]:
            results = results_of(image)
            changes = [] if validate_only else [result.change for result in results if result.change is not None]
            return results, changes

        return await self.decide(decision)
