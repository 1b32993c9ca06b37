"""From the cluster's metadata to kwire's image, and what of them has no place there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.state import BROKER, CLIENT_METRICS, GROUP, TOPIC, KraftState, KraftTopic
from kwire.config.broker import BrokerConfig
from kwire.config.dynamic import validate_dynamic
from kwire.config.errors import ConfigError
from kwire.config.group import validate_group_configs
from kwire.config.topic import validate_topic_configs
from kwire.metadata.features import FEATURES
from kwire.metadata.image import MetadataImage, PartitionImage, TopicImage

_SHOWN = 5


@dataclass(slots=True)
class Translated:
    """The image, and a line for each thing that could not come over."""

    image: MetadataImage
    left_out: list[str] = field(default_factory=list)


def translate(state: KraftState, topics: Iterable[KraftTopic], cluster_id: str, node_id: int) -> Translated:
    """An image with these topics, each partition led by the one broker, in a new leader epoch.

    Raises AdoptionError for a level of a feature that kwire does not know.
    """
    left_out: list[str] = []
    kept = {topic.name: _topic(topic, node_id) for topic in sorted(topics, key=lambda topic: topic.name)}
    image = MetadataImage(
        version=1,
        cluster_id=cluster_id,
        topics=kept,
        topic_names={topic.id: topic.name for topic in kept.values()},
        configs=_configs(state, kept, node_id, left_out),
        next_producer_id=state.next_producer_id,
        features=_features(state),
    )
    left_out += _security(state)
    return Translated(image, left_out)


def _topic(topic: KraftTopic, node_id: int) -> TopicImage:
    partitions = []
    for number in range(len(topic.partitions)):
        partition = topic.partitions[number]
        partitions.append(
            PartitionImage((node_id,), (node_id,), node_id, partition.leader_epoch + 1, partition.partition_epoch + 1)
        )
    return TopicImage(topic.name, topic.id, tuple(partitions))


def _features(state: KraftState) -> dict[str, int]:
    levels = {name: state.features.get(name, 0) for name in FEATURES}
    for name, level in levels.items():
        if not FEATURES[name].least <= level <= FEATURES[name].greatest:
            raise AdoptionError(f"the cluster works with {name} at level {level}, which this version of kwire has not")
    return levels


def _configs(
    state: KraftState, topics: Mapping[str, TopicImage], node_id: int, left_out: list[str]
) -> dict[tuple[str, str], Mapping[str, str]]:
    broker = BrokerConfig({"node.id": str(node_id)})
    found: dict[tuple[str, str], Mapping[str, str]] = {}
    for (kind, name), values in sorted(state.configs.items()):
        match kind:
            case _ if kind == TOPIC and name in topics:
                kept = _valid(f"topic {name}", values, partial(_validate_topic, broker), left_out)
                found["topic", name] = kept
            case _ if kind == BROKER and name in ("", str(node_id)):
                whose = f"broker {name}" if name else "all brokers"

                def validate(proposed: Mapping[str, str], per_broker: bool = name != "") -> None:
                    validate_dynamic(broker, proposed, per_broker=per_broker)

                found["broker", name] = _valid(whose, values, validate, left_out)
            case _ if kind == BROKER:
                left_out.append(f"configs of broker {name}: {_some(values)}")
            case _ if kind == GROUP:
                found["group", name] = _valid(
                    f"group {name}", values, lambda proposed: validate_group_configs(broker, proposed), left_out
                )
            case _ if kind == CLIENT_METRICS:
                left_out.append(f"the client metrics subscription {name}: kwire has none")
    return {key: values for key, values in found.items() if values}


def _validate_topic(broker: BrokerConfig, proposed: Mapping[str, str]) -> None:
    validate_topic_configs(broker, proposed)
    if proposed.get("remote.storage.enable") == "true":
        raise ConfigError(
            "what Apache Kafka has in remote storage is not taken over, only what lies in the directories"
        )


def _valid(
    whose: str, values: Mapping[str, str], validate: Callable[[Mapping[str, str]], None], left_out: list[str]
) -> dict[str, str]:
    """Those that kwire takes: all of them, or, tried one after the other, some."""
    with suppress(ConfigError):
        validate(values)
        return dict(values)
    kept: dict[str, str] = {}
    for name, value in sorted(values.items()):
        try:
            validate({**kept, name: value})
        except ConfigError as error:
            why = "not shown" if "password" in name else str(error)
            left_out.append(f"config {name} of {whose}: {why}")
        else:
            kept[name] = value
    return kept


def _security(state: KraftState) -> list[str]:
    lines = []
    if state.acls:
        principals = sorted({acl.principal for acl in state.acls.values()})
        lines.append(f"{len(state.acls)} ACLs, of {_some(principals)}: kwire has none yet, and allows everything")
    if state.scram_credentials:
        users = sorted({user for user, _ in state.scram_credentials})
        lines.append(f"SCRAM credentials of {_some(users)}: kwire has no SASL yet")
    if state.delegation_tokens:
        lines.append(f"{len(state.delegation_tokens)} delegation tokens: kwire has no SASL yet")
    if state.quotas:
        whose = sorted(
            {" ".join(f"{kind} {name or '(default)'}" for kind, name in entity) for entity, _ in state.quotas}
        )
        lines.append(f"{len(state.quotas)} quotas, of {_some(whose)}: kwire has none yet")
    return lines


def _some(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:_SHOWN]) + (f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else "")
