"""Random members of a consumer group: whatever they do, no partition has two owners, and in the end all are read."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.groups.consumer.leaving import fence_members
from kwire.coordinator.groups.consumer.member import MemberState
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.groups.consumer.support import GROUP, Member, desk, settle, topic_id, with_topics, without_topic
from tests.coordinator.groups.desk import Desk

NAMES = ("a", "b", "c", "d")
TOPICS = ("t", "u", "v")
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
subscriptions = st.lists(st.sampled_from(TOPICS), unique=True)
assignors = st.sampled_from(["uniform", "range", None])


class Group(RuleBasedStateMachine):
    """Up to four clients; what a client has, it says, and lets go of what it was told to only when it says so."""

    @initialize(interval=st.sampled_from(["0", "1000"]))
    def begin(self, interval: str) -> None:
        self.config = {
            "group.consumer.assignment.interval.ms": interval,
            "offsets.retention.check.interval.ms": "1000000000",  # which forgets groups without members
        }
        self.desk = desk({"t": 2, "u": 3}, **self.config)
        self.clients: dict[str, Member] = {}
        self.epoch = 0
        self.lives = dict.fromkeys(TOPICS, 0)

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.desk.machine.groups.get(GROUP)
        assert group is None or isinstance(group, ConsumerGroup)
        return group

    @rule(name=st.sampled_from(NAMES), topics=subscriptions, assignor=assignors, static=st.booleans())
    def join(self, name: str, topics: list[str], assignor: str | None, static: bool) -> None:
        instance = {"instance_id": name} if static else {}
        self._join(Member(self.desk, name, subscribed_topic_names=topics, server_assignor=assignor, **instance))

    @rule(name=st.sampled_from(NAMES), regex=st.sampled_from(["t", "[tu]", ".*", "x", ""]))
    def join_by_regex(self, name: str, regex: str) -> None:
        self._join(Member(self.desk, name, subscribed_topic_names=[], subscribed_topic_regex=regex))

    def _join(self, client: Member) -> None:
        try:
            client.join()
        except KafkaError as error:
            if error.code is not ErrorCode.UNRELEASED_INSTANCE_ID:  # not free before its owner leaves
                raise
        else:
            self.clients[client.id[0]] = client

    @rule(name=st.sampled_from(NAMES), lets_go=st.booleans())
    def beat(self, name: str, lets_go: bool) -> None:
        self._dare(name, lambda client: client.beat() if lets_go else client._take(client.say(client.owned)))

    @rule(name=st.sampled_from(NAMES))
    def beat_in_short(self, name: str) -> None:
        self._dare(name, lambda client: client._take(client.say(None)))

    @rule(name=st.sampled_from(NAMES))
    def beat_without_hearing_the_answer(self, name: str) -> None:
        self._dare(name, lambda client: client.miss())

    @rule(name=st.sampled_from(NAMES), topics=subscriptions)
    def change_topics(self, name: str, topics: list[str]) -> None:
        def change(client: Member) -> None:
            client.fields["subscribed_topic_names"] = topics
            client._take(client.say(client.owned, subscribed_topic_names=topics))

        self._dare(name, change)

    @rule(name=st.sampled_from(NAMES))
    def leave(self, name: str) -> None:
        self._dare(name, lambda client: client.leave())
        self.clients.pop(name, None)

    @rule(name=st.sampled_from(NAMES))
    def come_back_as_static(self, name: str) -> None:
        client = self.clients.get(name)
        if client is None or "instance_id" not in client.fields:
            return
        self._dare(name, lambda client: client.leave(-2))
        if name in self.clients:
            self._join(Member(self.desk, f"{name}{len(self.desk.log)}", **client.fields))

    def _dare(self, name: str, act: object) -> None:
        client = self.clients.get(name)
        if client is None:
            return
        try:
            act(client)  # type: ignore[operator]
        except KafkaError as error:
            if error.code not in FENCED:
                raise
            del self.clients[name]

    @rule(name=st.sampled_from(NAMES))
    def fail_to_write_a_heartbeat(self, name: str) -> None:
        """Nobody knows, where there was something to be written."""
        self._fail_to_write(lambda: self._dare(name, lambda client: client.miss()))

    @rule(name=st.sampled_from(NAMES))
    def fail_to_write_that_it_leaves(self, name: str) -> None:
        """The client does not try again."""
        self._fail_to_write(lambda: self._dare(name, lambda client: client.leave()))
        self.clients.pop(name, None)

    @rule(ms=st.sampled_from([0, 3000, 50_000]))
    def fail_to_write_what_falls_due(self, ms: int) -> None:
        self._fail_to_write(lambda: self.desk.pass_time(ms))

    def _fail_to_write(self, act: Callable[[], None]) -> None:
        self.desk.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        try:
            act()
        except KafkaError as error:
            if error.code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                raise
        self.desk.failure = None

    @rule(topic=st.sampled_from(TOPICS), count=st.integers(1, 6))
    def grow(self, topic: str, count: int) -> None:
        present = self.desk.image.topic(topic)
        if present is None:
            self.lives[topic] += 1
        if present is None or count > len(present.partitions):
            self.desk.image = with_topics(self.desk.image, {topic: count}, self.lives[topic])

    @rule(topic=st.sampled_from(TOPICS))
    def delete(self, topic: str) -> None:
        self.desk.image = without_topic(self.desk.image, topic)

    @rule(ms=st.sampled_from([0, 500, 3000, 20_000, 50_000]))
    def pass_time(self, ms: int) -> None:
        self.desk.pass_time(ms)

    @precondition(lambda self: self.group is not None)
    @rule()
    def move_to_another_coordinator(self) -> None:
        image = self.desk.image
        old, self.desk = self.desk, Desk(self.config, log=self.desk.log)
        self.desk.image = image
        self.desk.ms = old.ms
        assert snapshot(self.desk) == snapshot(old)
        for client in self.clients.values():
            client.desk = self.desk

    @precondition(lambda self: self.group is not None and self.clients)
    @rule()
    def settle(self) -> None:
        """After enough heartbeats of all, with the dead out, everybody has its target and every partition an owner."""
        self._bury_the_dead()
        for _ in range(4):
            self.desk.pass_time(10_001)  # also what resolves regular expressions anew
            for name in list(self.clients):
                self._dare(name, lambda client: settle(client, rounds=1))
        self._bury_the_dead()  # who had missed too many answers
        for _ in range(8):
            self.desk.pass_time(600)
            for name in list(self.clients):
                self._dare(name, lambda client: settle(client, rounds=1))
        group = self.group
        assert group is not None
        if not self.clients:
            return
        assert set(group.members) == {client.id for client in self.clients.values()}
        assert group.state_name == "Stable", [*group.members.values()]
        read = {
            (topic.id, index)
            for name in group.subscribed_topics()
            if (topic := self.desk.image.topic(name)) is not None
            for index in range(len(topic.partitions))
        }
        assert set(group.owners) == read
        for client in self.clients.values():
            assert client.owned == {
                topic: set(indexes) for topic, indexes in group.target_of(client.id).items() if indexes
            }

    def _bury_the_dead(self) -> None:
        assert self.group is not None
        alive = {client.id for client in self.clients.values()}
        dead = [member for member in self.group.members.values() if member.id not in alive]
        self.desk.run(lambda machine, now: fence_members(machine, GROUP, dead, None, now))

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        group = self.group if hasattr(self, "desk") else None
        if group is None:
            return
        owners: dict[tuple[bytes, int], str] = {}
        for member in group.members.values():
            for held in (member.assigned, member.pending_revocation):
                for topic, epochs in held.items():
                    assert epochs, "no topic without partitions"
                    for index in epochs:
                        assert owners.setdefault((topic, index), member.id) == member.id
        assert dict(group.owners.items()) == owners

    @invariant()
    def no_two_clients_read_a_partition(self) -> None:
        """A client reads what it was told to until it is told otherwise, or knows that it is fenced."""
        group = self.group if hasattr(self, "desk") else None
        if group is None:
            return
        readers: set[tuple[bytes, int]] = set()
        for client in self.clients.values():
            member = group.members.get(client.id)
            if member is None or member.epoch not in (client.epoch, member.previous_epoch):
                continue  # it does not know yet that it is fenced, or has left
            for topic, indexes in client.owned.items():
                for index in indexes:
                    if member.epoch_of(topic, index) is not None:
                        assert (topic, index) not in readers
                        readers.add((topic, index))

    @invariant()
    def epochs_make_sense(self) -> None:
        group = self.group if hasattr(self, "desk") else None
        if group is None:
            return
        epochs = group.epochs
        assert epochs.group >= self.epoch, "epochs never go back"
        self.epoch = epochs.group
        assert epochs.assignment <= epochs.group
        for member in group.members.values():
            assert member.epoch <= epochs.assignment
            assert bool(member.pending_revocation) <= (member.state is MemberState.UNREVOKED_PARTITIONS)

    @invariant()
    def who_falls_silent_is_fenced_in_the_end(self) -> None:
        group = self.group if hasattr(self, "desk") else None
        for member_id in () if group is None else group.members:
            assert ("consumer", "session", GROUP, member_id) in self.desk.machine.deadlines

    @invariant()
    def counts_are_those_of_the_members(self) -> None:
        group = self.group if hasattr(self, "desk") else None
        if group is None:
            return
        members = list(group.members.values())
        names = [name for member in members for name in member.topic_names]
        assert dict(group.names.items()) == {name: names.count(name) for name in names}
        assert set(group.regex_members.keys()) == {member.topic_regex for member in members if member.topic_regex}
        assert set(group.regexes) <= set(group.regex_members.keys())
        assert dict(group.static_members.items()) == {
            member.instance_id: member.id for member in members if member.instance_id is not None
        }


def snapshot(desk: Desk) -> object:
    """All that a group's records say."""
    group = desk.machine.groups.get(GROUP)
    if not isinstance(group, ConsumerGroup):
        return None
    return (
        sorted(group.members.items()),
        sorted(group.targets.items()),
        sorted(group.owners.items()),
        sorted(group.regexes.items()),
        sorted(group.names.items()),
        sorted(group.matches.items()),
        group.epochs,
    )


class TestGroup(Group.TestCase):
    settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_ids_of_topics_differ() -> None:
    assert len({topic_id(name) for name in TOPICS}) == len(TOPICS)
