"""What tells whether the topics of a group have changed (KIP-1101): a hash of their ids, partitions and racks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import pack

from kwire.coordinator.groups.consumer.xxh3 import xxh3_64
from kwire.metadata.image import BrokerImage, MetadataImage, TopicImage

_VERSION = b"\0"
"""Of the way in which a topic is hashed."""


class TopicHashes:
    """The hashes of topics, kept as long as a topic stays as it is."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicImage, Mapping[int, BrokerImage], int]] = {}

    def of_group(self, topics: Iterable[str], image: MetadataImage) -> int:
        """The hash of these topics, as a signed number; 0 where none of them exists."""
        hashes = [self.of_topic(topic, image) for name in sorted(topics) if (topic := image.topic(name)) is not None]
        return _signed(xxh3_64(pack(f"<{len(hashes)}q", *hashes))) if hashes else 0

    def of_topic(self, topic: TopicImage, image: MetadataImage) -> int:
        """The hash of one topic, likewise."""
        known = self._known.get(topic.name)
        if known is not None and known[0] is topic and known[1] is image.brokers:
            return known[2]
        if len(self._known) > len(image.topics):
            self._known = {name: known for name, known in self._known.items() if name in image.topics}
        number = topic_hash(topic, image.brokers)
        self._known[topic.name] = topic, image.brokers, number
        return number


def topic_hash(topic: TopicImage, brokers: Mapping[int, BrokerImage]) -> int:
    """As Apache Kafka computes it, with the racks of each partition's replicas. A signed number."""
    parts = [_VERSION, topic.id[7::-1], topic.id[:7:-1], _text(topic.name), pack("<i", len(topic.partitions))]
    for index, partition in enumerate(topic.partitions):
        parts.append(pack("<i", index))
        racks = (broker.rack for replica in partition.replicas if (broker := brokers.get(replica)) is not None)
        parts += [pack("<i", _units(rack)) + _text(rack) for rack in sorted(rack for rack in racks if rack)]
    return _signed(xxh3_64(b"".join(parts)))


def _text(text: str) -> bytes:
    """Java's characters, and how many."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units + pack("<i", len(units) // 2)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
