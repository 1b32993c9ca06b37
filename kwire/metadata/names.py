"""Which names a topic may have, and which topics are the broker's own. The messages are Apache Kafka's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kwire.protocol.errors import ErrorCode, KafkaError

MAX_NAME_LENGTH = 249
"""A folder `name-partition` must be a file name: 255 bytes, less the longest suffix a partition number makes."""

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
REMOTE_LOG_METADATA = "__remote_log_metadata"
"""No internal topic for Kafka's clients, but none of theirs either."""

INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})
"""Topics that coordinators write; clients that ask for all topics leave them out."""

_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def name_error(name: str) -> str | None:
    """What is wrong with a topic's name; None where nothing is."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.issuperset(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def check_name(name: str) -> None:
    """Raises INVALID_TOPIC_EXCEPTION for a name no topic may have."""
    reason = name_error(name)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def by_metric_name(names: Iterable[str]) -> dict[str, str]:
    """The names that have a '.' or a '_', by what they are in the names of metrics, where both are '_'."""
    return {name.replace(".", "_"): name for name in names if "." in name or "_" in name}


def check_collision(name: str, others: Mapping[str, str]) -> None:
    """Raises INVALID_TOPIC_EXCEPTION where one of `others` (`by_metric_name`) differs only in '.' and '_'."""
    if "." not in name and "_" not in name:
        return
    other = others.get(name.replace(".", "_"), name)
    if other != name:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")
