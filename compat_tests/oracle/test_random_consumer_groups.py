"""Random members of a group of the consumer protocol: whatever they ask, both brokers say the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.consumer_groups import known_topic
from compat_tests.oracle.groups import settle_groups
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kwire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

pytestmark = pytest.mark.xdist_group("oracle")

STEPS = 60


class Client:
    """A member of several topics: it keeps what it was told, and says what it has."""

    def __init__(self, side: Side, group: str, member_id: str, instance_id: str | None) -> None:
        self.side = side
        self.id = member_id
        self.who = {"group_id": group, "member_id": member_id, "instance_id": instance_id}
        self.epoch = self.epoch_before = 0
        self.told: dict[bytes, set[int]] = {}
        self.has: dict[bytes, set[int]] = {}

    def join(self, topics: list[str]) -> bool:
        """Whether it is in."""
        self.has = {}
        self.epoch = 0
        fields = {"rebalance_timeout_ms": 60_000, "server_assignor": "range"}
        return self.ask("joins", subscribed_topic_names=topics, **fields)

    def let_go(self) -> None:
        self.has = {topic: kept for topic, has in self.has.items() if (kept := has & self.told.get(topic, set()))}

    def ask(self, note: str, *, says: bool = True, **fields: Any) -> bool:
        """Whether there was no error. `says`: what it has."""
        owned = [TopicPartitions(topic_id=topic, partitions=sorted(has)) for topic, has in self.has.items()]
        asked = {"member_epoch": self.epoch, "topic_partitions": owned if says else None, **self.who, **fields}
        answer = self.side.ask(ConsumerGroupHeartbeatRequest(**asked), note=f"{self.id} {note}")
        if answer.error_code:
            return False
        self.epoch_before, self.epoch = self.epoch, answer.member_epoch
        if answer.assignment is not None:
            self.told = {topic.topic_id: set(topic.partitions) for topic in answer.assignment.topic_partitions}
            for topic, told in self.told.items():
                self.has[topic] = self.has.get(topic, set()) | told
        return True


class Crowd:
    """Up to three clients at a time. The assignor is range: the other goes by the order of a hash table in Java."""

    def __init__(self, side: Side, seed: int) -> None:
        settle_groups(side)
        self.side = side
        self.random = Random(seed)
        self.topics = [known_topic(side, 3, "three"), known_topic(side, 2, "two"), "no-such-topic"]
        self.group = side.name("group")
        self.clients: dict[str, Client] = {}
        self.joined = 0

    def step(self) -> None:
        name = self.random.choice("abc")
        client = self.clients.get(name)
        if client is None or self.random.random() < 0.1:
            self.start(name)
        else:
            often = (self.beat, self.beat, self.beat, self.keep, self.be_short, self.change, self.doubt, self.rejoin)
            act = self.random.choice((*often, self.pause, self.leave, self.be_in_another_epoch, self.be_nobody))
            act(name, client)
        if self.random.random() < 0.3:
            self.describe()

    def start(self, name: str) -> None:
        self.joined += 1
        number = self.random.choice(("", self.joined))
        if self.random.random() < 0.5:
            client = Client(self.side, self.group, f"{name}{number}", None)
        else:
            client = Client(self.side, self.group, f"static-{name}{number}", name)
        if client.join(self.some()):
            self.clients[name] = client

    def some(self) -> list[str]:
        """At least one: see `test_a_member_that_joins_without_topics`."""
        return self.random.sample(self.topics, self.random.randint(1, 3))

    def beat(self, name: str, client: Client) -> None:
        client.let_go()
        client.ask("beats")

    def keep(self, name: str, client: Client) -> None:
        client.ask("keeps what it has")

    def be_short(self, name: str, client: Client) -> None:
        client.ask("says nothing", says=False)

    def change(self, name: str, client: Client) -> None:
        topics = self.random.choice((self.some(), []))
        client.ask("changes", says=self.random.random() < 0.7, subscribed_topic_names=topics)

    def doubt(self, name: str, client: Client) -> None:
        client.ask("says all", subscribed_topic_names=self.some(), rebalance_timeout_ms=50_000)

    def rejoin(self, name: str, client: Client) -> None:
        client.join(self.some())

    def pause(self, name: str, client: Client) -> None:
        client.ask("pauses", member_epoch=-2)

    def leave(self, name: str, client: Client) -> None:
        client.ask("leaves", member_epoch=-1)
        del self.clients[name]

    def be_in_another_epoch(self, name: str, client: Client) -> None:
        epoch = self.random.choice((client.epoch_before, client.epoch - 1, client.epoch + 1))
        client.ask(f"in epoch {epoch}", says=self.random.random() < 0.6, member_epoch=max(epoch, 1))

    def be_nobody(self, name: str, client: Client) -> None:
        client.ask("is nobody", member_id="nobody", member_epoch=self.random.choice((1, 2, -1)))

    def describe(self) -> None:
        """What comes in the order of hash tables in Java is sorted."""
        answer = self.side.call(ConsumerGroupDescribeRequest(group_ids=[self.group]))
        for member in answer.groups[0].members:
            member.subscribed_topic_names.sort()
            for assignment in (member.assignment, member.target_assignment):
                for topic in assignment.topic_partitions:
                    topic.partitions.sort()
        self.side.record_response("ConsumerGroupDescribe", answer)


@pytest.mark.parametrize("seed", range(20))
def test_random_members(both: Both, seed: int) -> None:
    def scenario(side: Side) -> None:
        crowd = Crowd(side, seed)
        for _ in range(STEPS):
            crowd.step()
        crowd.describe()

    both.agree(scenario)
