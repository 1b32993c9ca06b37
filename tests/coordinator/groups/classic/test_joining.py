"""Who may join a classic group, what he is told if not, and what is written of new groups."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator.groups import requests
from kwire.coordinator.groups.admin import describe_group
from kwire.coordinator.groups.classic.group import ClassicState
from kwire.protocol.coordinator_records.group_metadata import GroupMetadataValue
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tests.coordinator.groups.classic.members import GROUP, SESSION_MS, Member, group_of, stable_group
from tests.coordinator.groups.desk import Desk, client


def ask(desk: Desk, version: int = 9, **options: Any) -> JoinGroupResponse:
    """An answer that is there at once."""
    fields = {
        "group_id": GROUP,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": SESSION_MS,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range")],
    }
    request = JoinGroupRequest(**(fields | options))
    response = desk.run(lambda machine, now: requests.join(machine, client(version=version), request, now))
    assert isinstance(response, JoinGroupResponse)
    return response


def told(response: JoinGroupResponse) -> tuple[ErrorCode, str]:
    return ErrorCode(response.error_code), response.member_id


def test_an_id_that_nobody_gave_makes_no_group() -> None:
    desk = Desk()
    assert told(ask(desk, member_id="me")) == (ErrorCode.UNKNOWN_MEMBER_ID, "me")
    assert len(desk.machine.groups) == 0
    assert desk.log == []


@pytest.mark.parametrize("options", [{"protocols": []}, {"protocol_type": ""}])
def test_a_group_is_there_though_the_first_one_may_not_join(options: dict[str, Any]) -> None:
    desk = Desk()
    assert told(ask(desk, **options)) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    assert group_of(desk).state is ClassicState.EMPTY
    assert group_of(desk.reloaded()).state is ClassicState.EMPTY


@pytest.mark.parametrize("version", [0, 3, 5])
def test_a_new_group_is_written_without_its_first_member(version: int) -> None:
    desk = Desk()
    member = Member(desk, instance_id="static" if version == 5 else None, version=version)
    member.join()
    value = desk.last_record().value
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation, value.protocol_type, value.protocol, value.leader, value.members) == (
        0,
        "",
        None,
        None,
        [],
    )
    assert not group_of(desk.reloaded()).members
    desk.settle()
    assert member.joined() is not None


def test_nothing_falls_due_of_a_new_group_that_could_not_be_stored() -> None:
    desk = Desk({"group.initial.rebalance.delay.ms": "1000"})
    desk.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(KafkaError):
        Member(desk, version=3).join()
    one = Member(desk)
    response = one._join(b"")
    assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
    desk.pass_time(1000)
    assert group_of(desk).generation == 0
    assert list(group_of(desk).pending_members) == [response.member_id]


def test_an_id_that_was_given_is_no_instance() -> None:
    desk = Desk()
    given = ask(desk).member_id
    assert told(ask(desk, member_id=given, group_instance_id="one")) == (ErrorCode.UNKNOWN_MEMBER_ID, given)


def test_a_full_group_takes_nobody_more_and_forgets_the_id_it_gave() -> None:
    desk = Desk()
    member = Member(desk)
    stable_group(desk, member)
    given = ask(desk).member_id
    desk.config = Desk({"group.max.size": "1"}).config
    assert told(ask(desk, member_id=given)) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert not group_of(desk).pending_members
    assert member.heartbeat() is ErrorCode.NONE


def test_who_was_in_a_group_that_is_too_large_now_is_out_if_he_comes_last() -> None:
    desk = Desk()
    one, two, three = (Member(desk) for _ in range(3))
    stable_group(desk, one, two, three)
    small = Desk({"group.max.size": "2"}, desk.log)
    for member in (one, two, three):
        member.desk = small
    assert group_of(small).state is ClassicState.PREPARING_REBALANCE  # over capacity when it was loaded
    assert three.join() is None
    assert two.join() is None
    assert told(ask(small, member_id=one.id)) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    joined = three.joined()  # the last one they waited for is out
    assert joined is not None
    assert joined.leader in (two.id, three.id)
    assert set(group_of(small).members) == {two.id, three.id}


def test_a_first_rebalance_is_complete_when_the_one_it_waits_for_is_gone() -> None:
    desk = Desk({"group.initial.rebalance.delay.ms": "60000"})
    one, two = Member(desk), Member(desk)
    two._join(b"")
    one.join()
    desk.pass_time(SESSION_MS)
    assert one.joined() is not None


def test_who_waits_when_he_is_removed_is_to_come_without_an_id() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk)
    stable_group(desk, one)
    two.join()
    assert two.leave() is ErrorCode.NONE
    assert told(two.waiting.result) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_the_fenced_one_is_told_his_own_id() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk, instance_id="two")
    stable_group(desk, one, two)
    three = Member(desk)
    three.join()
    two.join()
    again = Member(desk, instance_id="two")
    again.join()
    assert told(two.waiting.result) == (ErrorCode.FENCED_INSTANCE_ID, two.id)


def test_assignments_are_shown_until_they_change() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk)
    stable_group(desk, one)
    two.join()
    shown = describe_group(desk.machine, GROUP)
    assert shown.group_state == "PreparingRebalance"
    assert {(member.member_metadata, member.member_assignment) for member in shown.members} == {
        (b"", one.id.encode()),
        (b"", b""),
    }
