"""Subscriptions by regular expression: of RE2, for whole topic names, resolved together for a group.

A heartbeat only notes that something is to be resolved; a deadline that is due at once does it, so that the answer need
not wait for it, and the group epoch begins when the topics are known.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kwire.coordinator.groups.consumer.draft import Draft
from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.groups.consumer.member import ConsumerMember
from kwire.coordinator.groups.consumer.records import epoch_record, regex_record, regex_tombstone
from kwire.coordinator.runtime.outcome import Now, Outcome
from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine
    from kwire.metadata.image import MetadataImage

logger = logging.getLogger(__name__)

MIN_REFRESH_MS = 10_000
"""So long resolved expressions stay at least."""

_REASONS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "unexpected )": "regexp/syntax: internal error",
}
"""By what RE2 says: what RE2/J says to Apache Kafka's clients. Others are the same."""

MayDescribe = Callable[[str], bool]
"""Whether the client whose heartbeat it is may describe a topic: others are not matched."""


class Change(NamedTuple):
    """What became of a member's regular expression."""

    changed: bool
    resolved: bool
    """Whether the topics of the new one are known already."""


def check_pattern(regex: str) -> None:
    """Raises INVALID_REGULAR_EXPRESSION."""
    from kwire.coordinator.patterns import PatternError, whole_match  # brings RE2, which most brokers never need

    try:
        whole_match(regex)
    except PatternError as error:
        reason = str(error).partition(": ")[0]
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {_REASONS.get(reason, reason)}.",
        ) from None


class PatternUpdate:
    """Makes the change of a member's regular expression; made before the member is written, to compare."""

    def __init__(self, group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> None:
        """Raises INVALID_REGULAR_EXPRESSION for one that nobody in the group has yet."""
        self._old, self._new = old.topic_regex or "", new.topic_regex or ""
        self._changed = old.topic_regex != new.topic_regex
        self._is_new = self._changed and bool(self._new) and not group.regex_members[self._new]
        if self._is_new:
            check_pattern(self._new)
        self._had_any = bool(group.regex_members)
        self._resolved = len(group.regexes)
        newest = next(iter(group.regexes.values()), None)
        self._refreshed_ms = None if newest is None else newest.wall_ms
        self._version = 0 if newest is None else newest.version

    def write(self, machine: GroupMachine, draft: Draft, may_describe: MayDescribe, now: Now) -> Change:
        """To be called when the member is in the draft. Sees to it that what is not resolved soon is."""
        group = draft.group
        if self._changed and self._old and not group.regex_members[self._old]:
            draft.write(regex_tombstone(group.id, self._old))
        if self._needs_refresh(machine, group, now):
            draft.at_end(lambda: _refresh_soon(machine, group.id, may_describe, now))
        known = self._changed and (not self._is_new and self._new in group.regexes if self._new else bool(self._old))
        return Change(self._changed, known)

    def _needs_refresh(self, machine: GroupMachine, group: ConsumerGroup, now: Now) -> bool:
        if not (self._is_new or self._had_any) or not group.regex_members:
            return False
        if _key(group.id) in machine.deadlines:
            return False
        if self._refreshed_ms is not None and now.wall_ms <= self._refreshed_ms + MIN_REFRESH_MS:
            return False
        return (
            self._is_new
            or len(group.regex_members) != self._resolved
            or self._version < machine.topic_watch.newest(machine.image())
            or self._refreshed_ms is None
            or now.wall_ms > self._refreshed_ms + machine.config()["group.consumer.regex.refresh.interval.ms"]
        )


def _key(group_id: str) -> tuple[str, str]:
    return "regex", group_id


def _refresh_soon(machine: GroupMachine, group_id: str, may_describe: MayDescribe, now: Now) -> None:
    machine.deadlines.schedule(_key(group_id), now.ms, lambda now: _refresh(machine, group_id, may_describe, now))


def _refresh(machine: GroupMachine, group_id: str, may_describe: MayDescribe, now: Now) -> Outcome[None] | None:
    """Finds the topics of all regular expressions of a group, and begins an epoch where they are not the same."""
    from kwire.coordinator.patterns import whole_match

    group = machine.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return None
    image = machine.image()
    with Draft(machine, group_id) as draft:
        changed = False
        for regex in sorted(group.regex_members.keys()):
            matches = whole_match(regex)
            topics = frozenset(name for name in image.topics if matches(name) and may_describe(name))
            known = group.regexes.get(regex)
            changed |= topics != (frozenset() if known is None else known.topics)
            draft.write(regex_record(group_id, regex, topics, image.version, now.wall_ms))
        metadata_hash = machine.topic_hashes.of_group(group.subscribed_topics(), image)
        if changed or metadata_hash != group.epochs.metadata_hash:
            draft.write(epoch_record(group_id, group.epochs.group + 1, metadata_hash))
            logger.info("group epoch begins group=%r epoch=%d", group_id, group.epochs.group)
    return Outcome(None, draft.records)


class TopicWatch:
    """Notices topics that are new in the metadata."""

    def __init__(self) -> None:
        self._seen: Mapping[bytes, str] | None = None
        self._looked = self._newest = -1

    def newest(self, image: MetadataImage) -> int:
        """The newest version of the metadata seen to have brought topics; at first that of the image."""
        if image.version != self._looked:
            self._looked = image.version
            if self._seen is None or any(topic_id not in self._seen for topic_id in image.topic_names):
                self._newest = image.version
            self._seen = image.topic_names
        return self._newest
