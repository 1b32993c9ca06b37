"""What an operation is about to write, tried out before it is written."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.runtime.outcome import CoordinatorRecord

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine


class Draft:
    """While it lasts, the state is as it will be with the records drafted so far; then it is as it was.

    So each step of an operation sees what the steps before it do, and an error at any step leaves nothing behind.

        with Draft(machine, group_id) as draft:
            draft.write(member_record(group_id, member))
            … draft.group.subscribed_topics() …
        return Outcome(response, draft.records)
    """

    def __init__(self, machine: GroupMachine, group_id: str) -> None:
        self.records: list[CoordinatorRecord] = []
        self.group_id = group_id
        self._machine = machine
        self._number = 0
        self._effects: list[Callable[[], None]] = []

    def __enter__(self) -> Draft:
        self._number = self._machine.timeline.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._machine.timeline.end()
        self._machine.timeline.revert(self._number)
        if error is None:
            for effect in self._effects:
                effect()

    def write(self, *records: CoordinatorRecord) -> None:
        """Adds records."""
        for record in records:
            self._machine.replay(record, None)
        self.records += records

    def make_group(self) -> None:
        """Lets there be a consumer group without members; what its first record is replayed into later."""
        self._machine.groups[self.group_id] = ConsumerGroup(self.group_id, self._machine.timeline)

    def at_end(self, effect: Callable[[], None]) -> None:
        """`effect` is called at the end, with the state as it was before, unless there was an error."""
        self._effects.append(effect)

    @property
    def group(self) -> ConsumerGroup:
        """The consumer group. There must be one."""
        group = self._machine.groups[self.group_id]
        assert isinstance(group, ConsumerGroup)
        return group
