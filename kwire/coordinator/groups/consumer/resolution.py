"""The topics that the regular expressions of a group match, which are found for all of them together.

That is done by deadlines that are due at once: behind the answer to the heartbeat that asks for it, and a part at a
time, so that many topics and large expressions do not keep the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kwire.coordinator.groups.consumer.draft import Draft
from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.groups.consumer.records import epoch_record, regex_record
from kwire.coordinator.runtime.outcome import Now, Outcome

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

logger = logging.getLogger(__name__)

STEPS_AT_ONCE = 300_000
"""Of RE2, at worst: few milliseconds."""

_STEPS_OF_HASH = 1_000
"""What the hash of a topic takes in comparison."""

MayDescribe = Callable[[str], bool]
"""Whether the client whose heartbeat it is may describe a topic: others are not matched."""


def resolve_soon(machine: GroupMachine, group_id: str, may_describe: MayDescribe, now: Now) -> None:
    """Finds the topics of all regular expressions of a group, and begins an epoch where they are not the same."""

    def begin(now: Now) -> Outcome[None] | None:
        group = machine.groups.get(group_id)
        return _Resolution(machine, group, may_describe, now).go_on(now) if isinstance(group, ConsumerGroup) else None

    machine.deadlines.schedule(_key(group_id), now.ms, begin)


def is_under_way(machine: GroupMachine, group_id: str) -> bool:
    return _key(group_id) in machine.deadlines


def _key(group_id: str) -> tuple[str, str]:
    return "regex", group_id


class _Resolution:
    """On its way: of the expressions that the group had, among the topics that there were when it began."""

    def __init__(self, machine: GroupMachine, group: ConsumerGroup, may_describe: MayDescribe, now: Now) -> None:
        self._machine = machine
        self._group_id = group.id
        self._may_describe = may_describe
        self._image = machine.image()
        self._wall_ms = now.wall_ms
        self._topics: dict[str, set[str]] = {regex: set() for regex in sorted(group.regex_members.keys())}
        self._looks = self._look()

    def _look(self) -> Iterator[int]:
        """Looks at one topic after the other for each expression, and tells how many steps it takes."""
        from kwire.coordinator.patterns import Pattern, PatternError  # brings RE2, which most brokers never need

        for regex, topics in self._topics.items():
            try:
                pattern = Pattern(regex)
            except PatternError as error:  # of another broker's log: nobody can subscribe to it here
                logger.warning("regular expression ignored group=%r regex=%r error=%s", self._group_id, regex, error)
                continue
            for name, topic in self._image.topics.items():
                yield pattern.steps(name)
                if pattern.matches(name) and self._may_describe(name):
                    topics.add(name)
                    self._machine.topic_hashes.of_topic(topic, self._image)  # of which the group's is made in the end
                    yield _STEPS_OF_HASH

    def go_on(self, now: Now) -> Outcome[None] | None:
        """Looks at so many topics as may be; the outcome when it has seen all."""
        machine = self._machine
        group = machine.groups.get(self._group_id)
        if not isinstance(group, ConsumerGroup):
            return None
        steps = 0
        for more in self._looks:
            steps += more
            if steps >= STEPS_AT_ONCE:
                machine.deadlines.schedule(_key(group.id), now.ms, self.go_on)
                return None
        return self._written(group)

    def _written(self, group: ConsumerGroup) -> Outcome[None]:
        machine = self._machine
        with Draft(machine, group.id) as draft:
            changed = False
            for regex, topics in self._topics.items():
                if not group.regex_members[regex]:
                    continue  # nobody subscribes to it any more
                known = group.regexes.get(regex)
                changed |= topics != (set() if known is None else known.topics)
                draft.write(regex_record(group.id, regex, topics, self._image.version, self._wall_ms))
            metadata_hash = machine.topic_hashes.of_group(group.subscribed_topics(), machine.image())
            if changed or metadata_hash != group.epochs.metadata_hash:
                draft.write(epoch_record(group.id, group.epochs.group + 1, metadata_hash))
                logger.info("group epoch begins group=%r epoch=%d", group.id, group.epochs.group)
        return Outcome(None, draft.records)
