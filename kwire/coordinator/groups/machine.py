"""The state of one partition of __consumer_offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.config.broker import BrokerConfig
from kwire.coordinator.groups.consumer.metadata_hash import TopicHashes
from kwire.coordinator.groups.consumer.patterns import TopicWatch
from kwire.coordinator.groups.offsets.cleanup import schedule_cleanup
from kwire.coordinator.groups.offsets.offsets import Offsets
from kwire.coordinator.groups.replay import REPLAY
from kwire.coordinator.runtime.deadlines import Deadlines
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Producer
from kwire.coordinator.runtime.timeline import Timeline, TimelineDict
from kwire.metadata.image import MetadataImage
from kwire.ports.randomness import Randomness

if TYPE_CHECKING:
    from kwire.coordinator.groups.group import Group


class GroupMachine:
    """The groups of one partition and their offsets. The operations on it are functions in the folders beside it."""

    def __init__(
        self, config: Callable[[], BrokerConfig], image: Callable[[], MetadataImage], randomness: Randomness
    ) -> None:
        """`config`, `image`: the newest, whenever they are called."""
        self.timeline = Timeline()
        self.deadlines = Deadlines()
        self.config = config
        self.image = image
        self.randomness = randomness
        self.groups: TimelineDict[str, Group] = TimelineDict(self.timeline)
        """By id."""
        self.offsets = Offsets(self.timeline)
        self.topic_hashes = TopicHashes()
        self.topic_watch = TopicWatch()

    def replay(self, record: CoordinatorRecord, producer: Producer | None) -> None:
        REPLAY[type(record.key)](self, record, producer)

    def replay_marker(self, producer: Producer, *, commit: bool) -> None:
        self.offsets.end_transaction(producer, commit=commit)

    def loaded(self, now: Now) -> None:
        schedule_cleanup(self, now)
        for group in self.groups.values():
            group.loaded(self, now)

    def unloaded(self, now: Now) -> None:
        for group in self.groups.values():
            group.unloaded()
