"""Classic groups: joining, syncing, leaving, and time going by."""

from __future__ import annotations

import pytest

from kwire.coordinator.groups.classic.group import ClassicState
from kwire.coordinator.groups.classic.rebalancing import LEAST_WAIT_MS
from kwire.protocol.coordinator_records.group_metadata import GroupMetadataValue
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.groups.classic.members import (
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    Member,
    group_of,
    refused,
    stable_group,
)
from tests.coordinator.groups.desk import Desk


def test_the_first_member_leads_and_gets_its_assignment_at_once() -> None:
    desk = Desk()
    member = Member(desk)
    assert member.join() is None
    desk.settle()
    joined = member.joined()
    assert joined is not None
    assert (joined.generation_id, joined.leader, joined.protocol_name) == (1, member.id, "range")
    assert [each.member_id for each in joined.members] == [member.id]
    synced = member.sync({member.id: b"mine"})
    assert synced is not None
    assert synced.assignment == b"mine"
    assert group_of(desk).state is ClassicState.STABLE
    assert member.heartbeat() is ErrorCode.NONE


def test_a_second_member_makes_the_first_join_again() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk)
    stable_group(desk, one)
    assert two.join() is None
    assert one.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    joined = one.join()
    assert joined is not None
    assert [each.member_id for each in joined.members] == [one.id, two.id]
    follower = two.joined()
    assert follower is not None
    assert (follower.generation_id, follower.leader, follower.members) == (joined.generation_id, one.id, [])


def test_the_initial_delay_waits_for_more_members() -> None:
    desk = Desk({"group.initial.rebalance.delay.ms": "3000"})
    one, two = Member(desk), Member(desk)
    one.join()
    desk.pass_time(2000)
    two.join()
    desk.pass_time(2999)
    assert one.joined() is None  # the second one has prolonged the wait
    desk.pass_time(1001)
    leader, follower = one.joined(), two.joined()
    assert leader is not None
    assert follower is not None
    assert leader.generation_id == follower.generation_id == 1


def test_who_does_not_join_again_in_time_is_out() -> None:
    desk = Desk()
    one, two, three = (Member(desk) for _ in range(3))
    stable_group(desk, one, two)
    three.join()
    for _ in range(REBALANCE_MS // 5000 - 1):
        desk.pass_time(5000)
        one.heartbeat()
        two.heartbeat()
    one.join()
    assert one.joined() is None
    desk.pass_time(5000)
    joined = one.joined()
    assert joined is not None
    assert {each.member_id for each in joined.members} == {one.id, three.id}
    assert refused(two.heartbeat) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_session_that_expires_takes_its_member_out_and_the_next_one_leads() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk)
    stable_group(desk, one, two)
    desk.pass_time(SESSION_MS - 1)
    assert two.heartbeat() is ErrorCode.NONE
    desk.pass_time(1)
    assert two.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    joined = two.join()
    assert joined is not None
    assert (joined.leader, [each.member_id for each in joined.members]) == (two.id, [two.id])


def test_a_member_that_waits_for_the_others_need_not_heartbeat() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk)
    stable_group(desk, one)
    two.join()
    for _ in range(5):
        desk.pass_time(SESSION_MS - 1)
        assert one.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert one.join() is not None
    assert two.joined() is not None


def test_who_does_not_sync_in_time_is_out() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk)
    stable_group(desk, one)
    two.join()
    one.join()
    assert two.joined() is not None
    assert one.sync({one.id: b"all"}) is not None
    for _ in range(REBALANCE_MS // 5000):
        assert one.heartbeat() is ErrorCode.NONE
        assert two.heartbeat() is ErrorCode.NONE
        desk.pass_time(5000)
    assert one.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert refused(two.heartbeat) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_nobody_joins_with_is_forgotten() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk)
    stable_group(desk, one)
    two._join(b"")
    assert len(group_of(desk).pending_members) == 1
    one.heartbeat()
    desk.pass_time(SESSION_MS - 1)
    one.heartbeat()
    desk.pass_time(1)
    assert not group_of(desk).pending_members
    assert one.heartbeat() is ErrorCode.NONE


def test_the_last_one_who_leaves_leaves_the_group_empty() -> None:
    desk = Desk()
    member = Member(desk)
    stable_group(desk, member)
    assert member.leave() is ErrorCode.NONE
    assert group_of(desk).state is ClassicState.EMPTY
    value = desk.last_record().value
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation, value.members, value.leader) == (2, [], None)


@pytest.mark.parametrize("version", [3, 4, 9])
def test_the_id_comes_first_from_version_four_on(version: int) -> None:
    desk = Desk()
    member = Member(desk, version=version)
    response = member._join(b"")
    required = getattr(response, "error_code", None) == ErrorCode.MEMBER_ID_REQUIRED
    assert required == (version >= 4)


def test_a_static_member_that_restarts_keeps_its_assignment_without_a_rebalance() -> None:
    desk = Desk()
    one, two = Member(desk, instance_id="one"), Member(desk, instance_id="two")
    stable_group(desk, one, two)
    again = Member(desk, instance_id="two")
    joined = again.join()
    assert joined is not None
    assert (joined.generation_id, joined.leader, joined.skip_assignment) == (one.generation, one.id, False)
    assert again.id != two.id
    synced = again.sync()
    assert synced is not None
    assert synced.assignment == two.id.encode()
    assert one.heartbeat() is ErrorCode.NONE
    assert refused(two.heartbeat) is ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("version", [5, 9])
def test_a_static_leader_that_restarts_is_not_asked_to_assign(version: int) -> None:
    desk = Desk()
    one = Member(desk, instance_id="one")
    stable_group(desk, one)
    again = Member(desk, instance_id="one", version=version)
    joined = again.join()
    assert joined is not None
    if version >= 9:
        assert (joined.leader, joined.skip_assignment, len(joined.members)) == (again.id, True, 1)
    else:
        assert (joined.leader, joined.members) == (one.id, [])


def test_a_static_member_whose_new_id_cannot_be_stored_is_the_old_one_still() -> None:
    desk = Desk()
    one = Member(desk, instance_id="one")
    stable_group(desk, one)
    desk.failure = KafkaError(ErrorCode.NOT_COORDINATOR)
    assert refused(Member(desk, instance_id="one").join) is ErrorCode.NOT_COORDINATOR
    assert one.heartbeat() is ErrorCode.NONE
    assert group_of(desk).leader == one.id


def test_a_static_member_stays_until_its_session_expires() -> None:
    desk = Desk()
    one, two = Member(desk, instance_id="one"), Member(desk)
    stable_group(desk, one, two)
    assert two.leave() is ErrorCode.NONE  # a rebalance, in which the static member need not take part
    assert group_of(desk).state is ClassicState.PREPARING_REBALANCE
    desk.pass_time(SESSION_MS)
    assert not group_of(desk).members
    assert group_of(desk).state is ClassicState.EMPTY


def restarted_before_it_synced(desk: Desk) -> tuple[Member, Member]:
    """The leader, and a static member that has come again in the generation in which it never synced."""
    one, two = Member(desk), Member(desk, instance_id="two")
    stable_group(desk, one)
    two.join()
    one.join()
    assert two.joined() is not None
    assert one.sync({one.id: b"all"}) is not None
    again = Member(desk, instance_id="two")
    assert again.join() is not None
    return one, again


def test_a_static_member_that_restarts_before_it_has_synced_may_sync_still() -> None:
    desk = Desk()
    one, again = restarted_before_it_synced(desk)
    assert again.sync() is not None
    for _ in range(REBALANCE_MS // 5000 + 1):
        desk.pass_time(5000)
        assert (one.heartbeat(), again.heartbeat()) == (ErrorCode.NONE, ErrorCode.NONE)


def test_a_static_member_that_restarts_and_never_syncs_is_out() -> None:
    desk = Desk()
    one, again = restarted_before_it_synced(desk)
    for _ in range(REBALANCE_MS // 5000):
        assert (one.heartbeat(), again.heartbeat()) == (ErrorCode.NONE, ErrorCode.NONE)
        desk.pass_time(5000)
    assert one.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert refused(again.heartbeat) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_static_member_that_restarts_while_it_waits_goes_on_waiting() -> None:
    desk = Desk()
    one, again = Member(desk), Member(desk, instance_id="two")
    stable_group(desk, one)
    Member(desk, instance_id="two").join()
    assert again.join() is None
    for _ in range(2):
        desk.pass_time(SESSION_MS - 1)
        assert one.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert one.join() is not None
    assert again.joined() is not None


def test_static_members_without_time_to_join_again_are_not_looked_after_without_end() -> None:
    desk = Desk()
    one, two = Member(desk, instance_id="one"), Member(desk)
    stable_group(desk, one, two)
    group_of(desk).members[one.id].rebalance_timeout_ms = 0
    assert two.leave() is ErrorCode.NONE
    for due in desk.machine.deadlines.pop_due(desk.ms):
        assert due(desk.now) is None
    assert desk.machine.deadlines.at(("join", GROUP)) == desk.ms + LEAST_WAIT_MS
    assert one.join() is not None


def test_an_assignment_that_cannot_be_stored_is_answered_so_and_made_anew() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk)
    stable_group(desk, one)
    two.join()
    one.join()
    two.joined()
    two.sync()
    desk.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert refused(one.sync, {}) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert refused(two.synced) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert one.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_new_group_that_cannot_be_stored_is_not_there() -> None:
    desk = Desk()
    desk.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert refused(Member(desk).join) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(desk.machine.groups) == 0


def test_what_members_may_be_told() -> None:
    desk = Desk({"group.max.size": "1"})
    one = Member(desk)
    stranger = Member(desk)
    stranger.id = "stranger"
    assert refused(stranger.join) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(stranger.heartbeat) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(stranger.sync) is ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.leave() is ErrorCode.UNKNOWN_MEMBER_ID
    stable_group(desk, one)
    assert refused(Member(desk).join) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused(stranger.heartbeat) is ErrorCode.UNKNOWN_MEMBER_ID
    desk.config = Desk().config
    assert refused(Member(desk, protocols=("sticky",)).join) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    one.generation += 1
    assert refused(one.heartbeat) is ErrorCode.ILLEGAL_GENERATION
    assert refused(one.sync) is ErrorCode.ILLEGAL_GENERATION


def test_the_protocol_that_most_like_best_is_taken() -> None:
    desk = Desk({"group.initial.rebalance.delay.ms": "100"})
    members = [
        Member(desk, protocols=names) for names in (("a", "b", "c"), ("c", "b"), ("c", "b", "x"), ("x", "c", "b"))
    ]
    for member in members:
        member.join()
    desk.pass_time(1000)
    assert {member.joined().protocol_name for member in members} == {"c"}  # type: ignore[union-attr]


def test_another_coordinator_goes_on_where_this_one_stopped() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk, instance_id="two")
    stable_group(desk, one, two)
    other = desk.reloaded()
    group = group_of(other)
    assert (group.state, group.generation, group.leader) == (ClassicState.STABLE, one.generation, one.id)
    one.desk = two.desk = other
    assert one.heartbeat() is ErrorCode.NONE
    synced = two.sync()
    assert synced is not None
    assert synced.assignment == two.id.encode()
    other.pass_time(SESSION_MS)
    assert not group_of(other).members


def test_whoever_waits_is_told_when_another_broker_coordinates() -> None:
    desk = Desk()
    one, two, three = (Member(desk) for _ in range(3))
    stable_group(desk, one)
    two.join()
    one.join()
    two.joined()
    two.sync()
    desk.machine.unloaded(desk.now)
    assert refused(two.synced) is ErrorCode.NOT_COORDINATOR
    desk = Desk()
    three.desk = desk
    three.join()
    desk.machine.unloaded(desk.now)
    assert refused(three.joined) is ErrorCode.NOT_COORDINATOR


def test_who_comes_when_all_who_were_to_rebalance_have_left_may_join() -> None:
    desk = Desk({"group.initial.rebalance.delay.ms": "1000"})
    one, two = Member(desk), Member(desk, protocols=("sticky",))
    one.join()
    assert one.leave() is ErrorCode.NONE
    two.join()
    desk.pass_time(2000)
    assert two.joined() is not None
