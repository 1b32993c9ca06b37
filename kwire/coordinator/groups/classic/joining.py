"""JoinGroup (key 11) of a classic group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.caller import Caller
from kwire.coordinator.groups.classic.group import ClassicGroup, ClassicState
from kwire.coordinator.groups.classic.member import ClassicMember, SupportedProtocol
from kwire.coordinator.groups.classic.rebalancing import (
    begin_join_session,
    begin_pending_session,
    begin_session,
    complete_if_all_joined,
    drop_member,
    end_deadlines,
    end_session,
    prepare_rebalance,
    rebalance_or_complete,
    with_response,
)
from kwire.coordinator.groups.classic.records import empty_group_record, group_record
from kwire.coordinator.runtime.outcome import Now, Outcome
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

_ID_REQUIRED_FROM = 4
"""JoinGroup versions from this one on give a new member its id first (KIP-394)."""

_SKIPS_ASSIGNMENT_FROM = 9
"""A static leader that comes back is told, from this version on, that it need not assign (KIP-814)."""

Joined = Outcome[JoinGroupResponse]


def join(machine: GroupMachine, caller: Caller, request: JoinGroupRequest, now: Now) -> Joined:
    """The generation that the member is in, once the rebalance it starts or joins is complete.

    Errors are responses too, since they tell a member id: MEMBER_ID_REQUIRED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
    INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED. A group is created by whoever asks without a member id, even if
    that one may not join.
    """
    found = machine.groups.get(request.group_id)
    if found is None:
        if request.member_id:
            return refused(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        group = ClassicGroup(request.group_id, now.wall_ms)
    else:
        assert isinstance(found, ClassicGroup)
        group = found
    joining = _Joining(machine, group, caller, request, now)
    if not group.has_room_for(request.member_id, machine.config()["group.max.size"]):
        return joining.too_many()
    outcome = joining.as_known() if request.member_id else joining.as_new()
    if found is None:
        machine.groups[group.id] = group
        # Written though it says nothing yet, so that the group exists for whoever coordinates it next. There is nothing
        # else to write: a first rebalance is never complete at once.
        outcome.records = [empty_group_record(group)]
        outcome.replay = False
        outcome.failed = joining.undo_new_group
    return outcome


class _Joining:
    """One JoinGroup request on its way."""

    def __init__(
        self, machine: GroupMachine, group: ClassicGroup, caller: Caller, request: JoinGroupRequest, now: Now
    ) -> None:
        self.machine = machine
        self.group = group
        self.caller = caller
        self.request = request
        self.now = now
        self.protocols = tuple(SupportedProtocol(each.name, bytes(each.metadata)) for each in request.protocols)
        self.session_timeout_ms = request.session_timeout_ms
        self.rebalance_timeout_ms = request.rebalance_timeout_ms

    def as_new(self) -> Joined:
        """Without a member id."""
        group, request = self.group, self.request
        if not group.supports(request.protocol_type, self.protocols):
            return refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        instance_id = request.group_instance_id
        member_id = self._new_id()
        if instance_id is not None:
            present = group.static_members.get(instance_id)
            if present is not None:
                return self._replace_static(present, member_id)
            return self._add(member_id)
        if self.caller.api_version < _ID_REQUIRED_FROM:
            return self._add(member_id)
        group.pending_members.add(member_id)
        begin_pending_session(self.machine, group, member_id, self.now.ms + self.session_timeout_ms)
        return refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def as_known(self) -> Joined:
        """With a member id: one given a moment ago, or a member's."""
        group, request = self.group, self.request
        if not group.supports(request.protocol_type, self.protocols):
            return refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        if request.member_id in group.pending_members and request.group_instance_id is None:
            return self._add(request.member_id)
        try:
            group.check_member(request.member_id, request.group_instance_id)
        except KafkaError as error:
            return refused(error.code, request.member_id)
        member = group.members[request.member_id]
        same = member.protocols == self.protocols
        if group.state is ClassicState.COMPLETING_REBALANCE and same:
            return Outcome(group.joined(member))  # it seems to have missed the answer
        if group.state is ClassicState.STABLE and same and member.id != group.leader:
            return Outcome(group.joined(member))
        self._update(member)
        waiting = group.await_join(member)
        return with_response(waiting, rebalance_or_complete(self.machine, group, self.now, "a member joined again"))

    def too_many(self) -> Joined:
        """The group has no room: who was in it, before `group.max.size` was made smaller, is out."""
        machine, group, member_id = self.machine, self.group, self.request.member_id
        member = group.members.get(member_id)
        if member is not None:
            drop_member(machine, group, member)
        else:
            group.pending_members.discard(member_id)
            end_session(machine, group, member_id)
        response = refused(ErrorCode.GROUP_MAX_SIZE_REACHED).response
        return with_response(response, complete_if_all_joined(machine, group, self.now))

    def _new_id(self) -> str:
        instance_id = self.request.group_instance_id
        first = self.caller.client_id if instance_id is None else instance_id
        digits = self.machine.randomness.uuid().hex()
        return f"{first}-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def _add(self, member_id: str) -> Joined:
        group, request = self.group, self.request
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            self.caller.client_id,
            self.caller.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.protocols,
            is_new=True,
        )
        if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
            group.new_member_added = True
        group.add(member, request.protocol_type)
        waiting = group.await_join(member)
        begin_join_session(self.machine, group, member, self.now)
        return with_response(waiting, rebalance_or_complete(self.machine, group, self.now, "a member joined"))

    def _update(self, member: ClassicMember) -> None:
        self.group.change(member, self.protocols, self.rebalance_timeout_ms, self.session_timeout_ms)

    def _replace_static(self, old_id: str, new_id: str) -> Joined:
        """A static member came back without the id it had: whoever has that id still is fenced from now on."""
        machine, group, now = self.machine, self.group, self.now
        old_leader = group.leader
        end_session(machine, group, old_id)
        member = group.replace_static(old_id, new_id)
        before = member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms
        self._update(member)
        begin_session(machine, group, member, now)
        if group.state is ClassicState.STABLE and group.selected_protocol() == group.protocol_name:

            def failed(error: KafkaError, now: Now) -> None:
                if group.members.get(new_id) is member:
                    group.change(member, *before)
                    end_session(machine, group, new_id)
                    group.replace_static(new_id, old_id)
                    begin_session(machine, group, member, now)

            response = self._same_assignment(member, old_leader)
            assignment = {each.id: each.assignment for each in group.members.values()}
            return Outcome(response, [group_record(group, assignment)], replay=False, failed=failed)
        waiting = group.await_join(member)
        if group.state is ClassicState.PREPARING_REBALANCE:
            return with_response(waiting, complete_if_all_joined(machine, group, now))
        # The leader may have been told of the old id already, and would assign to that.
        return with_response(waiting, prepare_rebalance(machine, group, now, "a static member came back"))

    def _same_assignment(self, member: ClassicMember, old_leader: str | None) -> JoinGroupResponse:
        """The generation as it is: nobody need rebalance for a static member that only restarted."""
        group = self.group
        leads = member.id == group.leader
        if self.caller.api_version >= _SKIPS_ASSIGNMENT_FROM:
            response = group.joined(member)
            response.skip_assignment = leads
            return response
        response = group.joined(member)
        response.members = []
        if leads:
            # An older client that is told it leads would assign: it is told that its old self does.
            response.leader = old_leader or ""
        return response

    def undo_new_group(self, error: KafkaError, now: Now) -> None:
        """The new group could not be written: it is gone, and with it its members."""
        if self.machine.groups.get(self.group.id) is self.group:
            self.machine.groups.pop(self.group.id)
            end_deadlines(self.machine, self.group)
        self.group.unloaded()


def refused(code: ErrorCode, member_id: str = "") -> Joined:
    """The answer to one who may not join: to ask next with `member_id`, with none if that is ""."""
    return Outcome(JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None))
