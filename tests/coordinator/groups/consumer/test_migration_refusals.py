"""What members are refused in groups that change over between the protocols."""

from __future__ import annotations

import pytest

from kwire.coordinator.groups import requests
from kwire.coordinator.groups.classic.group import ClassicGroup
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.coordinator.groups.consumer.changing import Reader, assignment, classic_group, subscription
from tests.coordinator.groups.consumer.support import (
    GROUP,
    Member,
    desk,
    group_of,
    topic_id,
)
from tests.coordinator.groups.desk import Desk, client

T = topic_id("t")


class TestRefusals:
    def test_what_a_classic_member_of_a_consumer_group_must_know(self) -> None:
        at = desk({"t": 1})
        new = Member(at, "new")
        new.join()
        one = Reader(at)
        one.join(subscription("t"))
        one.generation += 1
        for ask in (one.heartbeat, one.sync):
            with pytest.raises(KafkaError) as raised:
                ask()
            assert raised.value.code is ErrorCode.ILLEGAL_GENERATION
        one.id = "new"
        for ask in (one.heartbeat, one.sync):
            with pytest.raises(KafkaError) as raised:
                ask()
            assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_sync_in_the_old_epoch_joins_again(self) -> None:
        at = desk({"t": 1})
        Member(at, "new").join()
        one = Reader(at)
        one.join(subscription("t"))
        Member(at, "other").join()
        with pytest.raises(KafkaError) as raised:
            one.sync()
        assert raised.value.code is ErrorCode.REBALANCE_IN_PROGRESS

    @pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
    def test_protocols_must_go_together(self, protocol_type: str) -> None:
        at = desk({"t": 1})
        Member(at, "new").join()
        Reader(at, protocols=("range", "roundrobin")).join(subscription("t"))
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name="sticky", metadata=subscription("t"))],
        )
        with pytest.raises(KafkaError) as raised:
            at.run(lambda machine, now: requests.join(machine, client(), request, now))
        assert raised.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    @pytest.mark.parametrize(
        ("policy", "reason"),
        [("downgrade", "online upgrade is disabled"), ("disabled", "online upgrade is disabled")],
    )
    def test_upgrades_may_be_off(self, policy: str, reason: str) -> None:
        at = desk({"t": 2}, **{"group.consumer.migration.policy": policy})
        classic_group(at, Reader(at), partitions=2)
        with pytest.raises(KafkaError, match=f"Cannot upgrade classic group group to consumer group because {reason}"):
            Member(at, "new").join()

    def test_downgrades_may_be_off(self) -> None:
        at = desk({"t": 2}, **{"group.consumer.migration.policy": "upgrade"})
        one = Reader(at)
        classic_group(at, one, partitions=2)
        new = Member(at, "new")
        new.join()
        new.leave()
        assert set(group_of(at).members) == {one.id}

    def test_no_classic_member_joins_where_nothing_may_change_over(self) -> None:
        at = desk({"t": 2}, **{"group.consumer.migration.policy": "disabled"})
        Member(at, "new").join()
        with pytest.raises(KafkaError) as raised:
            Reader(at).join(subscription("t"))
        assert raised.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_a_group_too_large(self) -> None:
        at = desk({"t": 2}, **{"group.consumer.max.size": "1"})
        classic_group(at, Reader(at), Reader(at), partitions=2)
        with pytest.raises(KafkaError, match="the group size exceeds the consumer group maximum size"):
            Member(at, "new").join()

    def test_a_subscription_that_cannot_be_read(self) -> None:
        at = desk({"t": 2})
        one = Reader(at)
        one.join(b"\0")
        at.settle()
        with pytest.raises(KafkaError, match="the embedded consumer protocol is malformed"):
            Member(at, "new").join()

    def test_an_assignor_with_data_of_its_own(self) -> None:
        at = desk({"t": 2})
        one = Reader(at)
        one.join(subscription("t"))
        at.settle()
        assert one.joined() is not None
        one.sync({one.id: assignment(0, 1, user_data=b"mine")})
        with pytest.raises(KafkaError, match="an unsupported custom assignor is in use"):
            Member(at, "new").join()

    def test_what_is_said_for_a_protocol_that_was_not_in_use_may_be_anything(self) -> None:
        at = desk({"t": 1})
        new = Member(at, "new")
        new.join()
        self.join(at, range=subscription("t"), sticky=b"")
        for _ in range(2):
            self.join(at, sticky=subscription("t"), range=subscription("t"))
        new.leave()
        group = at.machine.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        assert group.protocol_name == "sticky"

    def join(self, at: Desk, **protocols: bytes) -> None:
        """A member of the classic protocol, which likes the first one best."""
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols.items()],
        )
        at.run(lambda machine, now: requests.join(machine, client(version=3), request, now))
