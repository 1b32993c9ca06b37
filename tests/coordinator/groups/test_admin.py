"""What admins are told of groups."""

from __future__ import annotations

from kwire.coordinator.groups.admin import list_groups
from kwire.coordinator.groups.consumer.records import epoch_record
from tests.coordinator.groups.consumer.support import GROUP, Member, desk, group_of


def test_a_list_shows_what_no_failure_can_take_back() -> None:
    at = desk({"t": 1})
    Member(at, "one").join()
    at.machine.timeline.begin()
    at.machine.replay(epoch_record(GROUP, group_of(at).epochs.group + 1, 0), None)
    at.machine.replay(epoch_record("new", 1, 0), None)
    at.machine.timeline.end()
    assert group_of(at).state_name == "Assigning"
    assert [(group.group_id, group.group_state) for group in list_groups(at.machine, (), ())] == [(GROUP, "Stable")]
    assert len(list_groups(at.machine, {"stable"}, {"consumer"})) == 1
    assert list_groups(at.machine, {"assigning"}, ()) == []
