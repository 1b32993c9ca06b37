"""Changes and images as JSON values, for journals: what they hold in field names a person can read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kwire.metadata.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    Change,
    ConfigsChanged,
    ControllerChanged,
    FeatureLevelsChanged,
    LeaderEpochsBumped,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
)
from kwire.metadata.features import check_levels
from kwire.metadata.image import BrokerImage, Endpoint, MetadataImage, PartitionImage, TopicImage
from kwire.protocol import uuids

Json = dict[str, Any]


def change_to_json(change: Change) -> Json:
    """A JSON object whose "change" names the type of the change."""
    values: Json = {"change": type(change).__name__}
    match change:
        case BrokerRegistered():
            values["broker"] = _broker_to_json(change.broker)
        case BrokerUnregistered():
            values["broker_id"] = change.broker_id
        case TopicCreated():
            values["topic"] = _topic_to_json(change.topic)
            values["configs"] = dict(change.configs)
        case TopicDeleted():
            values["name"] = change.name
        case PartitionsAdded():
            values["topic"] = change.topic
            values["partitions"] = _partitions_to_json(change.partitions)
        case PartitionChanged():
            values["topic"] = change.topic
            values["index"] = change.index
            values["partition"] = _partition_to_json(change.partition)
        case LeaderEpochsBumped():
            pass
        case ConfigsChanged():
            values |= {"kind": change.kind, "name": change.name, "set": dict(change.set), "removed": change.removed}
        case ProducerIdsReserved():
            values["next_producer_id"] = change.next_producer_id
        case FeatureLevelsChanged():
            values["levels"] = dict(change.levels)
        case ControllerChanged():
            values["controller_id"] = change.controller_id
    return values


def change_from_json(values: Json) -> Change:
    """The change that `change_to_json` wrote. Raises ValueError, KeyError or TypeError where it did not."""
    match values["change"]:
        case "BrokerRegistered":
            return BrokerRegistered(_broker_from_json(values["broker"]))
        case "BrokerUnregistered":
            return BrokerUnregistered(values["broker_id"])
        case "TopicCreated":
            return TopicCreated(_topic_from_json(values["topic"]), values["configs"])
        case "TopicDeleted":
            return TopicDeleted(values["name"])
        case "PartitionsAdded":
            return PartitionsAdded(values["topic"], _partitions_from_json(values["partitions"]))
        case "PartitionChanged":
            return PartitionChanged(values["topic"], values["index"], _partition_from_json(values["partition"]))
        case "LeaderEpochsBumped":
            return LeaderEpochsBumped()
        case "ConfigsChanged":
            return ConfigsChanged(values["kind"], values["name"], values["set"], tuple(values["removed"]))
        case "ProducerIdsReserved":
            return ProducerIdsReserved(values["next_producer_id"])
        case "FeatureLevelsChanged":
            return FeatureLevelsChanged(values["levels"])
        case "ControllerChanged":
            return ControllerChanged(values["controller_id"])
    raise ValueError(f"unknown change {values['change']!r}: written by a newer version of kwire")


def image_to_json(image: MetadataImage) -> Json:
    """The whole image."""
    return {
        "version": image.version,
        "cluster_id": image.cluster_id,
        "controller_id": image.controller_id,
        "next_producer_id": image.next_producer_id,
        "features": dict(image.features),
        "brokers": [_broker_to_json(broker) for broker in image.brokers.values()],
        "topics": [_topic_to_json(topic) for topic in image.topics.values()],
        "configs": [[kind, name, dict(configs)] for (kind, name), configs in image.configs.items()],
    }


def image_from_json(values: Json) -> MetadataImage:
    """The image that `image_to_json` wrote. Raises ValueError, KeyError or TypeError where it did not."""
    topics = [_topic_from_json(topic) for topic in values["topics"]]
    features = values.get("features", {})
    check_levels(features)
    return MetadataImage(
        version=values["version"],
        cluster_id=values["cluster_id"],
        controller_id=values["controller_id"],
        brokers={broker["id"]: _broker_from_json(broker) for broker in values["brokers"]},
        topics={topic.name: topic for topic in topics},
        topic_names={topic.id: topic.name for topic in topics},
        configs={(kind, name): configs for kind, name, configs in values["configs"]},
        next_producer_id=values["next_producer_id"],
        features=features,
    )


def _broker_to_json(broker: BrokerImage) -> Json:
    return {
        "id": broker.id,
        "epoch": broker.epoch,
        "rack": broker.rack,
        "fenced": broker.fenced,
        "log_dirs": [uuids.to_text(log_dir) for log_dir in broker.log_dirs],
        "endpoints": [
            {"listener": end.listener, "host": end.host, "port": end.port, "security_protocol": end.security_protocol}
            for end in broker.endpoints
        ],
    }


def _broker_from_json(values: Json) -> BrokerImage:
    endpoints = tuple(Endpoint(**endpoint) for endpoint in values["endpoints"])
    log_dirs = tuple(uuids.from_text(text) for text in values.get("log_dirs", ()))
    return BrokerImage(values["id"], values["epoch"], endpoints, values["rack"], values["fenced"], log_dirs)


def _topic_to_json(topic: TopicImage) -> Json:
    return {"name": topic.name, "id": uuids.to_text(topic.id), "partitions": _partitions_to_json(topic.partitions)}


def _topic_from_json(values: Json) -> TopicImage:
    return TopicImage(values["name"], uuids.from_text(values["id"]), _partitions_from_json(values["partitions"]))


def _partitions_to_json(partitions: Iterable[PartitionImage]) -> list[Json]:
    return [_partition_to_json(partition) for partition in partitions]


def _partitions_from_json(values: list[Json]) -> tuple[PartitionImage, ...]:
    """Those of a topic: most are in the same state, and of that there is one object."""
    shared: dict[PartitionImage, PartitionImage] = {}
    partitions = map(_partition_from_json, values)
    return tuple(shared.setdefault(partition, partition) for partition in partitions)


def _partition_to_json(partition: PartitionImage) -> Json:
    values: Json = {
        "replicas": partition.replicas,
        "isr": partition.isr,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
    }
    if partition.directories:
        values["directories"] = [uuids.to_text(directory) for directory in partition.directories]
    return values


def _partition_from_json(values: Json) -> PartitionImage:
    return PartitionImage(
        tuple(values["replicas"]),
        tuple(values["isr"]),
        values["leader"],
        values["leader_epoch"],
        values["partition_epoch"],
        tuple(uuids.from_text(text) for text in values.get("directories", ())),
    )
