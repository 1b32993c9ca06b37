"""Random members of both protocols in one group: whatever they ask, both brokers say the same.

One member of the consumer protocol stays throughout: so it is a consumer group all the time, and nobody who joins it
by the classic protocol waits for others.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.groups import Client as ClassicClient
from compat_tests.oracle.sides import Side
from compat_tests.oracle.test_random_consumer_groups import STEPS, Client, Crowd
from compat_tests.oracle.wire import response_type_of
from kwire.protocol.consumer_protocol.assignment import ConsumerProtocolAssignment
from kwire.protocol.consumer_protocol.serde import decode
from kwire.protocol.consumer_protocol.subscription import ConsumerProtocolSubscription, TopicPartition
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.sync_group import SyncGroupRequest
from kwire.protocol.version_prefixed import encode_version_prefixed

pytestmark = pytest.mark.xdist_group("oracle")

PROTOCOLS = (("range",), ("range", "roundrobin"), ("roundrobin", "range"))


class Classic(ClassicClient):
    """A consumer of the classic protocol: it reads what it was last told, and says so when it joins."""

    topics: tuple[str, ...] = ()
    protocol: str = ""

    def __init__(self, side: Side, group: str, name: str, instance_id: str | None) -> None:
        super().__init__(side, group, name, instance_id=instance_id)
        self.has: dict[str, list[int]] = {}

    def come(self, protocols: tuple[str, ...]) -> bool:
        """Whether it is in."""
        owned = [TopicPartition(topic=topic, partitions=has) for topic, has in sorted(self.has.items())]
        says = ConsumerProtocolSubscription(topics=list(self.topics), owned_partitions=owned)
        answer = self.join(protocols=protocols, metadata=encode_version_prefixed(says, 1))
        self.protocol = answer.protocol_name or self.protocol
        return not answer.error_code

    def take(self, protocol: str) -> None:
        self.sync({}, protocol_name=protocol)

    def finish(self, note: str = "") -> Any:
        """An assignment is recorded as what it says."""
        request, version = self._waiting[0]
        if not isinstance(request, SyncGroupRequest):
            return super().finish(note)
        del self._waiting[0]
        answer = self.wire.receive(response_type_of(request), version)
        if not answer.error_code:
            told = decode(ConsumerProtocolAssignment, bytes(answer.assignment)).assigned_partitions
            self.has = {topic.topic: sorted(topic.partitions) for topic in told}
        said = {
            "error_code": answer.error_code,
            "protocol": (answer.protocol_type, answer.protocol_name),
            "assignment": self.has,
        }
        self.side.record(f"{self.name} SyncGroup", said)
        return answer


class MixedCrowd(Crowd):
    """Besides, up to two clients of the classic protocol at a time."""

    def __init__(self, side: Side, seed: int) -> None:
        super().__init__(side, seed)
        self.first = Client(side, self.group, "first", None)
        self.first.join(self.topics[:1])
        self.classic: dict[str, Classic] = {}

    def step(self) -> None:
        which = self.random.random()
        if which < 0.1:
            self.beat("", self.first)
        elif which < 0.5:
            super().step()
        else:
            self.step_of_classic(self.random.choice("de"))

    def step_of_classic(self, name: str) -> None:
        client = self.classic.get(name)
        if client is None or self.random.random() < 0.1:
            self.start_classic(name)
        else:
            often = (self.go_on, self.go_on, self.go_on, self.heartbeat, self.heartbeat, self.join_again)
            act = self.random.choice((*often, self.sync, self.subscribe, self.leave_group, self.change_over))
            act(name, client)
        if self.random.random() < 0.3:
            self.describe()

    def start_classic(self, name: str) -> None:
        self.joined += 1
        static = self.random.random() < 0.4
        client = Classic(self.side, self.group, f"{name}{self.joined}", name if static else None)
        if not static or self.random.random() < 0.3:
            client.id = client.name
        client.topics = tuple(self.some())
        if client.come(self.random.choice(PROTOCOLS)):
            self.classic[name] = client

    def go_on(self, name: str, client: Classic) -> None:
        if client.heartbeat().error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join_again(name, client)

    def heartbeat(self, name: str, client: Classic) -> None:
        client.heartbeat(generation_id=client.generation + self.random.choice((0, 0, 0, 1, -1)))

    def join_again(self, name: str, client: Classic) -> None:
        if client.come((client.protocol,)) and self.random.random() < 0.8:
            client.take(client.protocol)

    def sync(self, name: str, client: Classic) -> None:
        client.take(self.random.choice((client.protocol, client.protocol, "another")))

    def subscribe(self, name: str, client: Classic) -> None:
        client.topics = tuple(self.random.choice((self.some(), [])))
        self.join_again(name, client)

    def leave_group(self, name: str, client: Classic) -> None:
        client.leave()
        del self.classic[name]

    def change_over(self, name: str, client: Classic) -> None:
        if client.instance_id is not None:
            new = Client(self.side, self.group, f"static-{client.name}", client.instance_id)
            if new.join(self.some()):
                self.clients[name] = new
                del self.classic[name]


@pytest.mark.parametrize("seed", range(20))
def test_random_members_of_both_protocols(both: Both, seed: int) -> None:
    def scenario(side: Side) -> None:
        crowd = MixedCrowd(side, seed)
        for _ in range(STEPS):
            crowd.step()
        crowd.describe()

    both.agree(scenario)
