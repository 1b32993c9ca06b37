"""What a topic's configs may say of remote storage: every combination, tried in all ways in which configs are set."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from compat_tests.oracle.asking import TOPIC
from compat_tests.oracle.sides import Side
from compat_tests.oracle.topic_changes import DELETE, SET, change, replace
from kwire.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

Configs = tuple[tuple[str, str], ...]

SWITCHES = ("remote.storage.enable", "remote.log.copy.disable", "remote.log.delete.on.disable")
POLICIES = (None, "delete", "compact", "compact,delete", "")
RETENTIONS: tuple[Configs, ...] = (
    (),
    (("local.retention.ms", "5"),),
    (("local.retention.ms", "-1"),),
    (("local.retention.ms", "-2"),),
    (("retention.ms", "-1"), ("local.retention.ms", "-1")),
    (("retention.ms", "7"), ("local.retention.ms", "8")),
    (("retention.ms", "7"), ("local.retention.ms", "7")),
    (("local.retention.bytes", "5"),),
    (("retention.bytes", "7"), ("local.retention.bytes", "-1")),
    (("retention.bytes", "7"), ("local.retention.bytes", "8")),
    (("retention.bytes", "7"), ("local.retention.bytes", "7")),
    (("retention.bytes", "7"), ("local.retention.bytes", "8"), ("retention.ms", "7"), ("local.retention.ms", "8")),
    (("local.retention.ms", "-3"),),
)
WITHOUT_CONFIGS = 4
"""A version of CreateTopics that answers without the configs that a topic would have."""
AT_ONCE = 500
"""Topics in one request."""


def combinations() -> Iterator[Configs]:
    for *switches, policy, retention in product(*[(None, "true", "false")] * 3, POLICIES, RETENTIONS):
        named = zip((*SWITCHES, "cleanup.policy"), (*switches, policy), strict=True)
        yield (*((name, value) for name, value in named if value is not None), *retention)


def create_each(side: Side) -> None:
    """Whether a topic could be created with them."""
    every = list(combinations())
    for first in range(0, len(every), AT_ONCE):
        topics = [
            CreatableTopic(
                name=side.name(f"{number}"),
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
            )
            for number, configs in enumerate(every[first : first + AT_ONCE], first)
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=True)
        answers = {topic.name: topic for topic in side.call(request, WITHOUT_CONFIGS).topics}
        for number, configs in enumerate(every[first : first + AT_ONCE], first):
            told = answers[side.name(f"{number}")]
            described = " ".join(f"{key}={value}" for key, value in configs)
            side.record_response(f"CreateTopics v{WITHOUT_CONFIGS} ({described})", told)


CHANGES: tuple[tuple[tuple[int, str, str | None], ...], ...] = (
    *(((SET, name, value),) for name, value in product(SWITCHES, ("true", "false"))),
    *(((DELETE, name, None),) for name in SWITCHES),
    ((SET, "remote.storage.enable", "false"), (SET, "remote.log.delete.on.disable", "true")),
    ((DELETE, "remote.storage.enable", None), (SET, "remote.log.delete.on.disable", "true")),
    ((SET, "remote.storage.enable", "true"), (SET, "cleanup.policy", "compact")),
    ((SET, "remote.storage.enable", "true"), (SET, "cleanup.policy", "delete")),
    ((SET, "remote.log.copy.disable", "true"), (SET, "local.retention.ms", "-2")),
    (
        (SET, "remote.log.copy.disable", "true"),
        (SET, "local.retention.ms", "5"),
        (SET, "retention.ms", "5"),
        (SET, "local.retention.bytes", "5"),
        (SET, "retention.bytes", "5"),
    ),
    ((SET, "cleanup.policy", "compact"),),
    ((SET, "cleanup.policy", "compact,delete"),),
    ((SET, "cleanup.policy", ""),),
    ((SET, "local.retention.ms", "5"),),
    ((SET, "local.retention.ms", "-1"),),
    ((SET, "local.retention.ms", "-1"), (SET, "retention.ms", "-1")),
    ((SET, "retention.ms", "3"),),
    ((SET, "retention.bytes", "3"),),
    ((SET, "local.retention.bytes", "5"),),
    ((SET, "local.retention.bytes", "5"), (SET, "retention.bytes", "3")),
    ((SET, "flush.ms", "1000"),),
)


def change_each(side: Side, names: list[str]) -> None:
    """Whether topics could be changed so: by IncrementalAlterConfigs, and by AlterConfigs, which replaces all."""
    for changes in CHANGES:
        request = change(*((TOPIC, name, changes) for name in names), validate_only=True)
        side.ask(request, note=f"{changes}")
        kept = tuple((name, value) for operation, name, value in changes if operation == SET)
        request = replace(*((TOPIC, name, kept) for name in names), validate_only=True)
        side.ask(request, note=f"{kept}")
