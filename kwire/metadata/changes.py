"""What can change in the metadata, one type a change, and what a commit makes of the image.

A change names its subject and carries the whole new value, so that applying it needs nothing but the image.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kwire.metadata.features import check_levels
from kwire.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage


class InvalidChange(ValueError):
    """A change that does not fit the image: a topic created twice, a partition that does not exist, and the like."""


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker registered, or registered again (new epoch, new endpoints, fenced or not)."""

    broker: BrokerImage


@dataclass(frozen=True, slots=True)
class BrokerUnregistered:
    """A broker left for good. Its configs stay."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """A topic with its partitions and the configs given at its creation."""

    topic: TopicImage
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic is gone, its configs too."""

    name: str


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """More partitions at the end of a topic."""

    topic: str
    partitions: tuple[PartitionImage, ...]


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """A new state of one partition: leader, ISR, replicas, epochs."""

    topic: str
    index: int
    partition: PartitionImage


@dataclass(frozen=True, slots=True)
class LeaderEpochsBumped:
    """Every partition that has a leader got a new leader epoch (and partition epoch): its leader begins a new reign."""


@dataclass(frozen=True, slots=True)
class ConfigsChanged:
    """Overrides of one resource set and removed. Kinds: "topic", "broker", "client-metrics", "group"."""

    kind: str
    name: str
    set: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProducerIdsReserved:
    """All producer ids below `next_producer_id` belong to blocks that were handed out."""

    next_producer_id: int


@dataclass(frozen=True, slots=True)
class FeatureLevelsChanged:
    """These features work at these levels from now on."""

    levels: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """Another broker is the controller, or none (-1)."""

    controller_id: int


Change = (
    BrokerRegistered
    | BrokerUnregistered
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionChanged
    | LeaderEpochsBumped
    | ConfigsChanged
    | ProducerIdsReserved
    | FeatureLevelsChanged
    | ControllerChanged
)


def apply(image: MetadataImage, changes: Iterable[Change]) -> MetadataImage:
    """The image after one commit of `changes`, its version one higher. Raises InvalidChange; the given image stays.

    Each mapping, and each changed topic's tuple of partitions, is copied at most once however many changes there are.
    """
    draft = _Draft(image)
    for change in changes:
        draft.apply(change)
    return draft.finish()


class _Draft:
    """The copies that one commit makes, each made at the first change that needs it."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._controller_id = image.controller_id
        self._next_producer_id = image.next_producer_id
        self._features = image.features
        self._brokers: dict[int, BrokerImage] | None = None
        self._topics: dict[str, TopicImage] | None = None
        self._topic_names: dict[bytes, str] | None = None
        self._configs: dict[tuple[str, str], Mapping[str, str]] | None = None
        self._partitions: dict[str, list[PartitionImage]] = {}

    def apply(self, change: Change) -> None:
        match change:
            case PartitionChanged():
                self._change_partition(change)
            case TopicCreated():
                self._create_topic(change)
            case TopicDeleted():
                self._delete_topic(change.name)
            case PartitionsAdded():
                self._partitions_of(change.topic).extend(change.partitions)
            case LeaderEpochsBumped():
                self._bump_leader_epochs()
            case ConfigsChanged():
                self._change_configs(change)
            case ProducerIdsReserved():
                if change.next_producer_id < self._next_producer_id:
                    raise InvalidChange(f"producer ids below {self._next_producer_id} were reserved before")
                self._next_producer_id = change.next_producer_id
            case FeatureLevelsChanged():
                try:
                    check_levels(change.levels)
                except ValueError as error:
                    raise InvalidChange(str(error)) from None
                self._features = {**self._features, **change.levels}
            case ControllerChanged():
                self._controller_id = change.controller_id
            case BrokerRegistered():
                self._own_brokers()[change.broker.id] = change.broker
            case BrokerUnregistered():
                if self._own_brokers().pop(change.broker_id, None) is None:
                    raise InvalidChange(f"broker {change.broker_id} is not registered")

    def finish(self) -> MetadataImage:
        image = self._image
        if self._partitions:
            topics = self._own_topics()
            for name, partitions in self._partitions.items():
                topics[name] = TopicImage(name, topics[name].id, tuple(partitions))
        return MetadataImage(
            version=image.version + 1,
            cluster_id=image.cluster_id,
            controller_id=self._controller_id,
            brokers=image.brokers if self._brokers is None else self._brokers,
            topics=image.topics if self._topics is None else self._topics,
            topic_names=image.topic_names if self._topic_names is None else self._topic_names,
            configs=image.configs if self._configs is None else self._configs,
            next_producer_id=self._next_producer_id,
            features=self._features,
        )

    def _own_brokers(self) -> dict[int, BrokerImage]:
        if self._brokers is None:
            self._brokers = dict(self._image.brokers)
        return self._brokers

    def _own_topics(self) -> dict[str, TopicImage]:
        if self._topics is None:
            self._topics = dict(self._image.topics)
        return self._topics

    def _own_topic_names(self) -> dict[bytes, str]:
        if self._topic_names is None:
            self._topic_names = dict(self._image.topic_names)
        return self._topic_names

    def _own_configs(self) -> dict[tuple[str, str], Mapping[str, str]]:
        if self._configs is None:
            self._configs = dict(self._image.configs)
        return self._configs

    def _partitions_of(self, topic: str) -> list[PartitionImage]:
        partitions = self._partitions.get(topic)
        if partitions is None:
            image = (self._image.topics if self._topics is None else self._topics).get(topic)
            if image is None:
                raise InvalidChange(f"there is no topic {topic}")
            partitions = self._partitions[topic] = list(image.partitions)
        return partitions

    def _change_partition(self, change: PartitionChanged) -> None:
        partitions = self._partitions_of(change.topic)
        if not 0 <= change.index < len(partitions):
            raise InvalidChange(f"there is no partition {change.topic}-{change.index}")
        partitions[change.index] = change.partition

    def _create_topic(self, change: TopicCreated) -> None:
        topic = change.topic
        topics, names = self._own_topics(), self._own_topic_names()
        if topic.name in topics:
            raise InvalidChange(f"topic {topic.name} exists")
        if topic.id in names:
            raise InvalidChange(f"the id of topic {topic.name} is the id of topic {names[topic.id]}")
        topics[topic.name] = topic
        names[topic.id] = topic.name
        if change.configs:
            self._own_configs()["topic", topic.name] = dict(change.configs)

    def _delete_topic(self, name: str) -> None:
        topic = self._own_topics().pop(name, None)
        if topic is None:
            raise InvalidChange(f"there is no topic {name}")
        del self._own_topic_names()[topic.id]
        self._partitions.pop(name, None)
        self._own_configs().pop(("topic", name), None)

    def _bump_leader_epochs(self) -> None:
        bumped: dict[PartitionImage, PartitionImage] = {}
        for name in self._own_topics():
            partitions = self._partitions_of(name)
            for index, partition in enumerate(partitions):
                if partition.leader >= 0:
                    if partition not in bumped:
                        bumped[partition] = replace(
                            partition,
                            leader_epoch=partition.leader_epoch + 1,
                            partition_epoch=partition.partition_epoch + 1,
                        )
                    partitions[index] = bumped[partition]

    def _change_configs(self, change: ConfigsChanged) -> None:
        configs = self._own_configs()
        key = (change.kind, change.name)
        overrides = {**configs.get(key, {}), **change.set}
        for name in change.removed:
            overrides.pop(name, None)
        if overrides:
            configs[key] = overrides
        else:
            configs.pop(key, None)
