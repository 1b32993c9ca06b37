"""Random members of a classic group: they join, sync, leave, die, come again; coordinators change, appends fail."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kwire.coordinator.groups.classic.group import ClassicGroup, ClassicState
from kwire.coordinator.runtime.outcome import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.join_group import JoinGroupResponse
from kwire.protocol.messages.sync_group import SyncGroupResponse
from tests.coordinator.groups.classic.members import GROUP, REBALANCE_MS, SESSION_MS, Member
from tests.coordinator.groups.desk import Desk
from tests.coordinator.groups.offsets.committing import store, stored

LONG_MS = 30 * 60_000
"""Longer than all that anybody waits for in turn: for new members 5 minutes, sessions, rebalances."""
PROTOCOLS = (("range",), ("range", "sticky"), ("sticky", "range"), ("other",))

members = st.integers(0, 5)


class RandomMembers(RuleBasedStateMachine):
    @initialize(delay_ms=st.sampled_from([0, 3000]), max_size=st.sampled_from([2, 100]))
    def begin(self, delay_ms: int, max_size: int) -> None:
        self.settings = {"group.initial.rebalance.delay.ms": str(delay_ms), "group.max.size": str(max_size)}
        self.desk = Desk(self.settings)
        self.members: list[Member] = []
        self.told: list[JoinGroupResponse] = []
        """Every answer to a join of this coordinator."""
        self.pending: list[Pending[Any]] = []
        self.names: dict[str, str] = {}
        """Of member ids those of static members are all one."""
        self.offsets: dict[tuple[str, int], int] = {}
        self.reloads = 0

    # What members do

    @rule(
        static=st.sampled_from([None, None, "x", "y"]),
        protocols=st.sampled_from(PROTOCOLS),
        version=st.sampled_from([3, 5, 9]),
    )
    def come(self, static: str | None, protocols: tuple[str, ...], version: int) -> None:
        if len(self.members) == 6:
            self.members.pop(0)  # its client vanishes
        instance_id = static if version >= 5 else None
        self.members.append(Member(self.desk, instance_id=instance_id, protocols=protocols, version=version))
        self._join(self.members[-1])

    @rule(index=members)
    def join(self, index: int) -> None:
        if index < len(self.members):
            self._join(self.members[index])

    @rule(index=members)
    def ask_for_an_id_alone(self, index: int) -> None:
        if index < len(self.members):
            self._try(self.members[index], lambda: self.members[index]._join(b""))

    @rule(index=members)
    def sync(self, index: int) -> None:
        if index < len(self.members):
            self._sync(self.members[index])

    @rule(index=members)
    def heartbeat(self, index: int) -> None:
        if index < len(self.members):
            member = self.members[index]
            self._try(member, member.heartbeat)

    @rule(index=members)
    def leave(self, index: int) -> None:
        if index < len(self.members):
            member = self.members[index]
            if self._try(member, member.leave) is ErrorCode.NONE:
                member.id, member.generation = "", -1

    @rule(index=members, offset=st.integers(0, 100), partition=st.integers(0, 2))
    def commit(self, index: int, offset: int, partition: int) -> None:
        if index >= len(self.members):
            return
        member = self.members[index]
        codes = self._try(
            member,
            lambda: store(
                self.desk,
                {("topic", partition): offset},
                member_id=member.id,
                generation_id_or_member_epoch=member.generation,
                group_instance_id=member.instance_id,
            ),
        )
        if codes is not None:
            self.offsets["topic", partition] = offset

    @rule(ms=st.sampled_from([1, 500, 3000, SESSION_MS - 1, SESSION_MS, REBALANCE_MS]))
    def let_time_pass(self, ms: int) -> None:
        self._pass_time(ms)

    @rule()
    def all_go_on(self) -> None:
        """What clients do if nothing is in their way."""
        for member in self.members:
            self._join(member)
        self._pass_time(0)
        for member in self.members:
            self._sync(member)

    # What goes wrong

    @rule()
    def fail_the_next_append(self) -> None:
        self.desk.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    @rule()
    def another_coordinator(self) -> None:
        before = self.desk.machine.groups.get(GROUP)
        stable = _shown(before) if isinstance(before, ClassicGroup) and before.state is ClassicState.STABLE else None
        self.desk.machine.unloaded(self.desk.now)
        assert all(pending.result is not None for pending in self.pending)
        ms = self.desk.ms
        self.desk = self.desk.reloaded(self.settings)
        self.desk.ms = ms
        self.desk.machine.deadlines = type(self.desk.machine.deadlines)()
        self.desk.machine.loaded(self.desk.now)
        self.told, self.pending, self.reloads = [], [], self.reloads + 1
        for member in self.members:
            member.desk, member.waiting = self.desk, None
        group = self.desk.machine.groups.get(GROUP)
        if stable is not None:
            assert isinstance(group, ClassicGroup)
            assert _shown(group) == stable
            small = len(group.members) > self.desk.config["group.max.size"]
            assert group.state is (ClassicState.PREPARING_REBALANCE if small else ClassicState.STABLE)

    # What always holds

    @invariant()
    def one_member_leads(self) -> None:
        group = self._group()
        if group is not None:
            assert (group.leader in group.members) if group.members else group.leader is None
            assert (group.state is ClassicState.EMPTY) <= (not group.members)
            assert not group.pending_members & group.members.keys()
            waiting = [member for member in group.members.values() if member.awaiting_join is not None]
            assert group.awaiting_joins == len(waiting)
            assert group.pending_syncs <= group.members.keys()
            assert group.static_members == {
                member.instance_id: member.id for member in group.members.values() if member.instance_id is not None
            }

    @invariant()
    def the_answers_of_a_generation_agree(self) -> None:
        self._collect()
        by_generation: dict[int, set[tuple[str | None, str]]] = {}
        for answer in self.told:
            leader = self._name(answer.leader)
            by_generation.setdefault(answer.generation_id, set()).add((answer.protocol_name, leader))
            if answer.members:
                assert self._name(answer.member_id) == leader
                assert answer.member_id in {told.member_id for told in answer.members}
        assert all(len(answers) == 1 for answers in by_generation.values()), by_generation

    @invariant()
    def whoever_is_in_has_a_deadline(self) -> None:
        """Nobody is taken for alive for ever, but who waits for others: then these have one."""
        group = self._group()
        if group is not None:
            deadlines = self.desk.machine.deadlines
            for member in group.members.values():
                alive = ("session", GROUP, member.id) in deadlines
                others = ("join", GROUP) in deadlines or ("sync", GROUP) in deadlines
                assert alive or (member.is_waiting and others), member.id
            for member_id in group.pending_members:
                assert ("session", GROUP, member_id) in deadlines

    @invariant()
    def no_committed_offset_is_lost(self) -> None:
        assert stored(self.desk) == self.offsets

    def teardown(self) -> None:
        if hasattr(self, "desk"):
            self._pass_time(LONG_MS)
            assert all(pending.result is not None for pending in self.pending)
            group = self._group()
            assert group is None or group.state is ClassicState.EMPTY

    # How

    def _group(self) -> ClassicGroup | None:
        group = self.desk.machine.groups.get(GROUP)
        assert group is None or isinstance(group, ClassicGroup)
        return group

    def _join(self, member: Member) -> None:
        self._note(member, self._try(member, member.join))

    def _sync(self, member: Member) -> None:
        self._collect()
        last = next((answer for answer in reversed(self.told) if answer.member_id == member.id), None)
        assignment = {
            told.member_id: self._share(told.member_id, member.generation)
            for told in (last.members if last is not None else ())
        }
        self._note(member, self._try(member, lambda: member.sync(assignment)))

    def _share(self, member_id: str, generation: int) -> bytes:
        return f"{self._name(member_id)} in {generation}".encode()

    def _try(self, member: Member, act: Any) -> Any:
        """What comes of it, None for an error, which the member takes in."""
        try:
            return act()
        except KafkaError as error:
            self._learn(member, error.code)
            return None

    def _learn(self, member: Member, code: ErrorCode) -> None:
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            member.id, member.generation = "", -1
        elif code is ErrorCode.FENCED_INSTANCE_ID and member in self.members:
            self.members.remove(member)

    def _note(self, member: Member, answer: JoinGroupResponse | SyncGroupResponse | None) -> None:
        if answer is not None:
            self._take(member, answer)
        elif isinstance(member.waiting, Pending):
            self.pending.append(member.waiting)

    def _collect(self) -> None:
        """Takes in the answers that have come."""
        group = self._group()
        for each in () if group is None else group.members.values():
            self.names[each.id] = each.instance_id or each.id
        for member in list(self.members):
            if isinstance(member.waiting, Pending) and member.waiting.result is not None:
                result, member.waiting = member.waiting.result, None
                if isinstance(result, KafkaError):
                    self._learn(member, result.code)
                else:
                    self._take(member, result)

    def _take(self, member: Member, answer: JoinGroupResponse | SyncGroupResponse) -> None:
        if answer.error_code:
            self._learn(member, ErrorCode(answer.error_code))
        elif isinstance(answer, JoinGroupResponse):
            member.id, member.generation = answer.member_id, answer.generation_id
            self.told.append(answer)
        else:
            own = self._share(member.id, member.generation)
            assert answer.assignment == own or (self.reloads and not answer.assignment)

    def _name(self, member_id: str) -> str:
        return self.names.get(member_id, member_id)

    def _pass_time(self, ms: int) -> None:
        until = self.desk.ms + ms
        while True:
            try:
                self.desk.pass_time(until - self.desk.ms)
                return
            except KafkaError:
                continue  # an append failed: the coordinator goes on


def _shown(group: ClassicGroup) -> object:
    members = {
        member.id: (member.instance_id, member.assignment, member.session_timeout_ms, member.rebalance_timeout_ms)
        for member in group.members.values()
    }
    return group.generation, group.protocol_type, group.protocol_name, group.leader, members


TestRandomMembers = RandomMembers.TestCase
TestRandomMembers.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
