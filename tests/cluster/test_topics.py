"""Create topics, add partitions, delete topics: Apache Kafka's checks, codes and messages."""

import pytest

from kwire.cluster.topics import (
    Creation,
    NewPartitions,
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
)
from kwire.metadata.changes import PartitionsAdded, TopicCreated, TopicDeleted, apply
from kwire.metadata.image import PartitionImage
from kwire.ports.randomness import SeededRandomness
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError

from .images import image, topic, topic_id

ONE = PartitionImage((1,), (1,), 1)


def refuse_foo(configs):
    if "foo" in configs:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "Unknown topic config name: foo")


def creation(partitions: int = 2, replication_factor: int = 1) -> Creation:
    return Creation(partitions, replication_factor, refuse_foo, SeededRandomness(3))


def create(*topics, before=None, **defaults):
    return create_topics(before or image(), topics, creation(**defaults))


def outcome(result):
    return (result.name, result.error.code, result.error.message)


def test_defaults_and_configs():
    (result,) = create(NewTopic("t", configs=[("retention.ms", "5")]), partitions=3, replication_factor=2)
    assert isinstance(result.change, TopicCreated)
    assert result.topic_id == result.change.topic.id != uuids.ZERO
    assert result.change.configs == {"retention.ms": "5"}
    assert len(result.change.topic.partitions) == 3
    for partition in result.change.topic.partitions:
        assert len(partition.replicas) == 2
        assert partition.isr == partition.replicas
        assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (partition.replicas[0], 0, 0)
    assert apply(image(), [result.change]).topic_by_id(result.topic_id).name == "t"


def test_by_hand():
    (result,) = create(NewTopic("t", assignments=[(1, [3, 2]), (0, [1, 3])]), before=image(fenced=(1,)))
    assert result.change.topic.partitions == (
        PartitionImage((1, 3), (3,), 3),
        PartitionImage((3, 2), (3, 2), 3),
    )


def test_ids_differ():
    first, second = create(NewTopic("a"), NewTopic("b"))
    assert first.topic_id != second.topic_id


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (NewTopic("there"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'there' already exists."),
        (
            NewTopic("x_y.z"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'x_y.z' collides with existing topic: x.y_z",
        ),
        (
            NewTopic("__cluster_metadata"),
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (
            NewTopic("t", partitions=0),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            NewTopic("t", partitions=0, replication_factor=0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            NewTopic("t", 1, 4),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached because "
            "only 3 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (
            NewTopic("t", configs=[("a", None), ("foo", "1"), ("b", None)]),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: a,b",
        ),
        (NewTopic("t", 0, configs=[("foo", "1")]), ErrorCode.INVALID_CONFIG, "Unknown topic config name: foo"),
        (
            NewTopic("t", 1, assignments=[(0, [1])]),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            NewTopic("t", replication_factor=1, assignments=[(0, [1])]),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            NewTopic("t", assignments=[(0, [1]), (0, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            NewTopic("t", assignments=[(0, [1]), (2, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic("t", assignments=[(-1, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic("t", assignments=[(0, [3])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled "
            "shutdown.",
        ),
    ],
)
def test_creations_that_are_refused(request_, code, message):
    before = image(topic("there", ONE), topic("x.y_z", ONE), fenced=(3,))
    (result,) = create(request_, before=before)
    assert outcome(result) == (request_.name, code, message)
    assert result.change is None


def test_an_illegal_name_is_refused():
    assert outcome(create(NewTopic("a/b"))[0])[1] is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_one_bad_topic_does_not_harm_the_others():
    good, bad, twice = create(NewTopic("good"), NewTopic("bad", 0), NewTopic("twice"), NewTopic("twice"))
    assert good.change is not None
    assert outcome(bad)[1] is ErrorCode.INVALID_PARTITIONS
    assert outcome(twice) == ("twice", ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


@pytest.mark.parametrize("topics", [[NewTopic("t", 10_001)], [NewTopic("a", 6000), NewTopic("b", 6000)]])
def test_too_many_partitions_in_one_request(topics):
    with pytest.raises(KafkaError) as raised:
        create(*topics)
    assert raised.value.code is ErrorCode.POLICY_VIOLATION
    assert raised.value.message == "Excessively large number of partitions per request."


def add(*requests, before=None):
    return create_partitions(before or image(topic("t", ONE)), requests, SeededRandomness(3))


def test_added_partitions_have_the_topics_replication_factor():
    before = image(topic("t", PartitionImage((1, 2), (1,), 1)))
    (result,) = add(NewPartitions("t", 4), before=before)
    assert isinstance(result.change, PartitionsAdded)
    assert [len(partition.replicas) for partition in result.change.partitions] == [2, 2, 2]
    assert len(apply(before, [result.change]).topics["t"].partitions) == 4


def test_partitions_added_by_hand():
    (result,) = add(NewPartitions("t", 3, [[2], [3]]))
    assert result.change == PartitionsAdded("t", (PartitionImage((2,), (2,), 2), PartitionImage((3,), (3,), 3)))


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (NewPartitions("nope", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (NewPartitions("t", 1), ErrorCode.INVALID_PARTITIONS, "Topic already has 1 partition(s)."),
        (
            NewPartitions("t", 0),
            ErrorCode.INVALID_PARTITIONS,
            "The topic t currently has 1 partition(s); 0 would not be an increase.",
        ),
        (
            NewPartitions("t", 2, []),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
        ),
        (
            NewPartitions("t", 2, [[9]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            NewPartitions("t", 2, [[1, 2]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with "
            "previous partitions, which have 1 replica(s).",
        ),
    ],
)
def test_additions_that_are_refused(request_, code, message):
    (result,) = add(request_)
    assert outcome(result) == (request_.topic, code, message)


def test_a_topic_named_twice_gets_no_partitions():
    (result,) = add(NewPartitions("t", 2), NewPartitions("t", 3))
    assert outcome(result) == ("t", ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


def test_delete_by_name_and_by_id():
    before = image(topic("a", ONE), topic("b", ONE))
    results = delete_topics(before, [("a", uuids.ZERO), (None, topic_id("b"))])
    assert {(result.name, result.topic_id, result.change) for result in results} == {
        ("a", topic_id("a"), TopicDeleted("a")),
        ("b", topic_id("b"), TopicDeleted("b")),
    }
    assert not apply(before, [result.change for result in results]).topics


def test_deletions_that_are_refused():
    before = image(topic("a", ONE), topic("b", ONE))
    results = delete_topics(
        before,
        [
            ("nope", uuids.ZERO),
            (None, topic_id("nope")),
            (None, uuids.ZERO),
            ("a", topic_id("a")),
            ("n", uuids.ZERO),
            ("n", uuids.ZERO),
            (None, topic_id("i")),
            (None, topic_id("i")),
            ("b", uuids.ZERO),
            (None, topic_id("b")),
        ],
    )
    assert {(*outcome(result), result.topic_id) for result in results} == {
        (
            "nope",
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
            uuids.ZERO,
        ),
        (None, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.", topic_id("nope")),
        (None, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.", uuids.ZERO),
        ("a", ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.", topic_id("a")),
        ("n", ErrorCode.INVALID_REQUEST, "Duplicate topic name.", uuids.ZERO),
        (None, ErrorCode.INVALID_REQUEST, "Duplicate topic id.", topic_id("i")),
        (
            "b",
            ErrorCode.INVALID_REQUEST,
            "The provided topic name maps to an ID that was already supplied.",
            topic_id("b"),
        ),
    }
    assert all(result.change is None for result in results)
