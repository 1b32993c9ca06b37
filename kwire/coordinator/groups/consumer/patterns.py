"""Subscriptions by regular expression: of RE2, for whole topic names, resolved together for a group.

A heartbeat only sees to it that they are resolved soon; the group epoch begins when the topics are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kwire.coordinator.groups.consumer.draft import Draft
from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.groups.consumer.member import ConsumerMember
from kwire.coordinator.groups.consumer.records import regex_tombstone
from kwire.coordinator.groups.consumer.resolution import MayDescribe, is_under_way, resolve_soon
from kwire.coordinator.runtime.outcome import Now
from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine
    from kwire.metadata.image import MetadataImage

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

_LOOK_BEHIND = "invalid perl operator: (?<"
"""What RE2/J takes for a group's name."""


class Change(NamedTuple):
    """What became of a member's regular expression."""

    changed: bool
    resolved: bool
    """Whether the topics of the new one are known already."""


def check_pattern(regex: str) -> None:
    """Raises INVALID_REGULAR_EXPRESSION."""
    from kwire.coordinator.patterns import Pattern, PatternError  # brings RE2, which most brokers never need

    try:
        Pattern(regex)
    except PatternError as error:
        said = str(error)
        reason = "invalid named capture group" if said.startswith(_LOOK_BEHIND) else said.partition(": ")[0]
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
        resolved = next(iter(group.regexes.values()), None)  # as old as all others
        self._refreshed_ms = None if resolved is None else resolved.wall_ms
        self._version = 0 if resolved is None else resolved.version

    def write(self, draft: Draft) -> Change:
        """To be called when the member is in the draft."""
        group = draft.group
        if self._changed and self._old and not group.regex_members[self._old]:
            draft.write(regex_tombstone(group.id, self._old))
        known = self._changed and (not self._is_new and self._new in group.regexes if self._new else bool(self._old))
        return Change(self._changed, known)

    def resolve(self, machine: GroupMachine, draft: Draft, may_describe: MayDescribe, now: Now) -> None:
        """To be called then, too. Sees to it that what is not resolved, or not any more, soon is."""
        group_id = draft.group_id
        if self._needs_refresh(machine, draft.group, now):
            draft.at_end(lambda: resolve_soon(machine, group_id, may_describe, now))

    def _needs_refresh(self, machine: GroupMachine, group: ConsumerGroup, now: Now) -> bool:
        if not (self._is_new or self._had_any) or not group.regex_members:
            return False
        if is_under_way(machine, group.id):
            return False
        age_ms = -1 if self._refreshed_ms is None else now.wall_ms - self._refreshed_ms
        if 0 <= age_ms <= MIN_REFRESH_MS:
            return False
        return (
            self._is_new
            or len(group.regex_members) != self._resolved
            or self._version < machine.topic_watch.newest(machine.image())
            or age_ms < 0  # never, or before the clock was set back
            or age_ms > machine.config()["group.consumer.regex.refresh.interval.ms"]
        )


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
