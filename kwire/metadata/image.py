"""The immutable picture of the cluster: brokers, topics, partitions, configs.

A handler reads one `MetadataImage` for the whole of a request. A new image shares everything that a commit did not
touch with the one before it. Images are made by `kwire.metadata.changes.apply`, never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

NO_LEADER = -1
"""`PartitionImage.leader` of a partition that has none."""

NO_CONTROLLER = -1
"""`MetadataImage.controller_id` while no broker is the controller."""

_NOTHING: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one listener of a broker is reached; `security_protocol` is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""

    listener: str
    host: str
    port: int
    security_protocol: str


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A registered broker. `epoch` grows with each registration; a fenced broker leads nothing and is not shown.

    `log_dirs` holds the ids of its log dirs (KIP-858).
    """

    id: int
    epoch: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    fenced: bool = False
    log_dirs: tuple[bytes, ...] = ()

    def endpoint(self, listener: str) -> Endpoint | None:
        """The endpoint of the listener of that name."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """The state of one partition, which only the controller changes.

    `replicas` is in order of preference, `leader` is NO_LEADER or one of them. `leader_epoch` grows when the leader is
    elected anew, `partition_epoch` with every change. `directories` holds a directory id for each replica, or nothing.
    Partitions in the same state may share one object.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic; `partitions[i]` is partition i, `id` its 16 byte uuid."""

    name: str
    id: bytes
    partitions: tuple[PartitionImage, ...]


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """Everything the cluster agrees on, as of `version` (the number of commits that made it).

    `topic_names` maps a topic id to the name. `configs` maps ("topic" | "broker" | "client-metrics" | "group", name)
    to the overrides set by an admin; ("broker", "") are the cluster-wide defaults. `next_producer_id` is the first id
    that no block has reserved yet. `features` holds the levels that somebody set (`kwire.metadata.features`). The
    mappings must not be changed.
    """

    version: int = 0
    cluster_id: str = ""
    controller_id: int = NO_CONTROLLER
    brokers: Mapping[int, BrokerImage] = field(default_factory=lambda: _NOTHING)
    topics: Mapping[str, TopicImage] = field(default_factory=lambda: _NOTHING)
    topic_names: Mapping[bytes, str] = field(default_factory=lambda: _NOTHING)
    configs: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=lambda: _NOTHING)
    next_producer_id: int = 0
    features: Mapping[str, int] = field(default_factory=lambda: _NOTHING)

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """The partition's state; None where there is no such topic or partition."""
        image = self.topics.get(topic)
        if image is None or not 0 <= index < len(image.partitions):
            return None
        return image.partitions[index]

    def config(self, kind: str, name: str) -> Mapping[str, str]:
        """The overrides set for that resource; empty where there are none."""
        return self.configs.get((kind, name), _NOTHING)
