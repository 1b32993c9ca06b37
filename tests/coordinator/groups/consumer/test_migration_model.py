"""Random members of both protocols in one group: it changes over and back, and in the end all is read once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kwire.coordinator.groups.classic.group import ClassicGroup
from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.runtime.outcome import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.groups.classic.members import Member as Classic
from tests.coordinator.groups.consumer.changing import assignment, subscription, told
from tests.coordinator.groups.consumer.support import GROUP, Member, desk, topic_id
from tests.coordinator.groups.desk import Desk

PARTITIONS = 5
NAMES = ("a", "b", "c")
GONE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID)
FENCED = (
    *GONE,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNRELEASED_INSTANCE_ID,  # a static member that was fenced waits for the end of its session
)


class Old(Classic):
    """A consumer of the classic protocol: it reads until it joins again, and leads if it is told to."""

    def __init__(self, desk: Desk, **fields: Any) -> None:
        super().__init__(desk, **fields)
        self.does = "out"
        self.has: set[int] = set()

    def step(self) -> None:
        if isinstance(self.waiting, Pending) and not self.waiting.done:
            return
        try:
            getattr(self, f"_{self.does}")()
        except KafkaError as error:
            if error.code in GONE:
                self.id, self.has = "", set()
            elif error.code is not ErrorCode.REBALANCE_IN_PROGRESS:
                raise
            self.does = "out"

    def _out(self) -> None:
        self.has = set()
        self.does = "joining"
        joined = self.join(subscription("t"))
        if joined is not None:
            self._go_on(joined)

    def _joining(self) -> None:
        self._go_on(self.joined())

    def _go_on(self, joined: Any) -> None:
        members = sorted(member.member_id for member in joined.members)
        shares = {member: assignment(*range(place, PARTITIONS, len(members))) for place, member in enumerate(members)}
        self.does = "syncing"
        answer = self.sync(shares)
        if answer is not None:
            self._take(answer)

    def _syncing(self) -> None:
        self._take(self.synced())

    def _take(self, answer: Any) -> None:
        self.has = told(bytes(answer.assignment))
        self.does = "in"

    def _in(self) -> None:
        if self.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS:
            self._out()


class New(Member):
    """A consumer of the consumer protocol."""

    def step(self) -> None:
        try:
            if self.epoch:
                self.beat()
            else:
                self.join()
        except KafkaError as error:
            if error.code not in FENCED:
                raise
            self.epoch, self.owned, self.target = 0, {}, {}


class Group(RuleBasedStateMachine):
    """Up to three clients, each of one protocol or the other."""

    @initialize(policy=st.sampled_from(["bidirectional", "upgrade"]), interval=st.sampled_from(["0", "1000"]))
    def begin(self, policy: str, interval: str) -> None:
        settings = {"group.consumer.migration.policy": policy, "group.consumer.assignment.interval.ms": interval}
        self.desk = desk({"t": PARTITIONS}, **settings)
        self.clients: dict[str, Old | New] = {}

    @rule(name=st.sampled_from(NAMES), static=st.booleans())
    def start_old(self, name: str, static: bool) -> None:
        self.clients[name] = Old(self.desk, instance_id=name if static else None)
        self.clients[name].step()

    @rule(name=st.sampled_from(NAMES), static=st.booleans())
    def start_new(self, name: str, static: bool) -> None:
        client = New(self.desk, f"{name}-{len(self.desk.log)}", **({"instance_id": name} if static else {}))
        try:
            client.step()
        except KafkaError as error:
            if error.code is not ErrorCode.UNRELEASED_INSTANCE_ID:
                raise
        else:
            self.clients[name] = client

    @rule(name=st.sampled_from(NAMES), times=st.integers(1, 3))
    def step(self, name: str, times: int) -> None:
        if name in self.clients:
            for _ in range(times):
                self.clients[name].step()

    @rule(name=st.sampled_from(NAMES))
    def leave(self, name: str) -> None:
        client = self.clients.pop(name, None)
        try:
            if isinstance(client, New) or (client is not None and client.id):
                client.leave()
        except KafkaError as error:
            if error.code not in (*GONE, ErrorCode.GROUP_ID_NOT_FOUND):
                raise

    @rule(name=st.sampled_from(NAMES))
    def vanish(self, name: str) -> None:
        self.clients.pop(name, None)

    @rule(name=st.sampled_from(NAMES))
    def fail_to_write(self, name: str) -> None:
        """The next step's records can't be appended."""
        client = self.clients.get(name)
        if client is None:
            return
        self.desk.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        try:
            client.step()
        except KafkaError as error:
            if error.code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                raise
            if isinstance(client, Old):
                client.does = "out"
        self.desk.failure = None

    @rule(ms=st.sampled_from([100, 1000, 6000, 20_000]))
    def pass_time(self, ms: int) -> None:
        self.desk.pass_time(ms)

    @rule()
    def settle(self) -> None:
        """The dead expire, and the living share everything."""
        for _ in range(70):
            self.desk.pass_time(1000)
            for client in self.clients.values():
                client.step()
        if not self.clients:
            return
        group = self.desk.machine.groups[GROUP]
        assert group.state_name == "Stable"
        assert len(members_of(group)) == len(self.clients)
        read = [index for client in self.clients.values() for index in reads(client)]
        assert sorted(read) == list(range(PARTITIONS))
        if any(isinstance(client, New) for client in self.clients.values()):
            assert isinstance(group, ConsumerGroup)
        again = Desk(log=self.desk.log).machine.groups[GROUP]
        assert type(again) is type(group)
        assert members_of(again) == members_of(group)

    @invariant()
    def nobody_reads_what_another_reads(self) -> None:
        group = self.desk.machine.groups.get(GROUP) if hasattr(self, "desk") else None
        if not isinstance(group, ConsumerGroup):
            return  # who was in a generation before a classic group's newest does not know better
        seen: set[int] = set()
        for client in self.clients.values():
            member = group.members.get(client.id)
            if member is None:
                continue
            held = {index for index in reads(client) if member.epoch_of(topic_id("t"), index) is not None}
            assert not held & seen
            seen |= held

    @invariant()
    def who_falls_silent_is_gone_in_the_end(self) -> None:
        group = self.desk.machine.groups.get(GROUP) if hasattr(self, "desk") else None
        deadlines = self.desk.machine.deadlines if group is not None else ()
        if isinstance(group, ConsumerGroup):
            assert all(("consumer", "session", GROUP, member_id) in deadlines for member_id in group.members)
        elif isinstance(group, ClassicGroup):
            for member in group.members.values():
                assert member.is_waiting or ("session", GROUP, member.id) in deadlines


def members_of(group: object) -> set[str]:
    assert isinstance(group, ClassicGroup | ConsumerGroup)
    return set(group.members)


def reads(client: Old | New) -> Iterable[int]:
    return client.has if isinstance(client, Old) else client.owned.get(topic_id("t"), set())


class TestGroup(Group.TestCase):
    settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
