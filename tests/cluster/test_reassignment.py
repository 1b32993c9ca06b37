"""Which brokers are to hold a partition: what one broker, and an order of replicas, can have."""

from __future__ import annotations

import pytest

from kwire.cluster.reassignment import Reassignment, reassign
from kwire.metadata.changes import BrokerRegistered, TopicCreated, apply
from kwire.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from kwire.protocol.errors import ErrorCode


@pytest.fixture
def image() -> MetadataImage:
    brokers = [BrokerRegistered(BrokerImage(number, 1, ())) for number in (1, 2, 3)]
    topic = TopicImage("t", bytes(16), (PartitionImage((1, 2), (1, 2), 1), PartitionImage((3,), (3,), 3)))
    return apply(MetadataImage(), [*brokers, TopicCreated(topic)])


@pytest.mark.parametrize(
    ("topic", "partition", "replicas", "may_change_factor", "code", "message"),
    [
        ("absent", 0, [1], True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named absent."),
        ("absent", 0, None, True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named absent."),
        ("t", 2, [1], True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition t:2."),
        ("t", -1, None, True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition t:-1."),
        ("t", 0, None, True, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
        ("t", 0, [], True, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "includes an empty replica list."),
        ("t", 0, [1, 1], True, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "includes the broker 1 more than once."),
        ("t", 0, [1, 4], True, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 4, but no such broker is registered."),
        ("t", 0, [1], False, ErrorCode.INVALID_REPLICATION_FACTOR, "is changed from 2 to 1"),
        ("t", 0, [1], True, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "does not move replicas from broker to broker"),
        ("t", 1, [1], True, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "does not move replicas from broker to broker"),
    ],
)
def test_what_can_not_be(image, topic, partition, replicas, may_change_factor, code, message) -> None:
    asked = [Reassignment(topic, partition, replicas)]
    (error,), changes = reassign(image, asked, may_change_factor=may_change_factor)
    assert error is not None
    assert (error.code, changes) == (code, [])
    assert message is None or message in error.message


def test_what_is_so_already(image) -> None:
    asked = [Reassignment("t", 0, [1, 2]), Reassignment("t", 1, [3]), Reassignment("t", 1, [3])]
    assert reassign(image, asked, may_change_factor=True) == ([None, None, None], [])


def test_another_order(image) -> None:
    errors, changes = reassign(
        image, [Reassignment("t", 0, [2, 1]), Reassignment("t", 0, None)], may_change_factor=False
    )
    assert [error and error.code for error in errors] == [None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
    state = apply(image, changes).topics["t"].partitions[0]
    assert (state.replicas, state.isr, state.leader) == ((2, 1), (1, 2), 1)
    assert state.partition_epoch == 1
