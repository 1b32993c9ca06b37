"""CreateTopics, CreatePartitions and DeleteTopics: every error they can tell, and what they tell of success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from compat_tests.oracle.topic_configs import CONFIGS, FEATURES_TO_COME
from kwire.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kwire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

pytestmark = pytest.mark.xdist_group("oracle")

VERSIONS = range(2, 8)
NO_ELR = "no eligible leader replicas"
NO_ID = bytes(16)
ME = 1
"""The id of either broker."""

Assignments = Sequence[tuple[int, Sequence[int]]]


def new(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignments: Assignments = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in assignments
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )


def create(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=30_000, validate_only=validate_only)


def metadata(side: Side, name: str) -> None:
    """Records what became of a topic."""
    side.ask(
        MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False),
        until=lambda answer: not answer.topics[0].error_code and bool(answer.topics[0].partitions),
    )


def test_names(both: Both) -> None:
    def scenario(side: Side) -> None:
        there = side.topic("there")
        side.topic("a.b")
        names = (
            there,
            side.name("a_b"),
            "",
            ".",
            "..",
            "bad name",
            "bad/name",
            "ü",
            "a" * 250,
            "__cluster_metadata",
            "null\0",
            "a:b",
        )
        for version in VERSIONS:
            for name in names:
                side.ask(create(new(name)), version, note=name[:10])
                side.ask(create(new(name), validate_only=True), version, note=f"{name[:10]}, validate only")

    both.agree(scenario)


def test_the_longest_name(both: Both) -> None:
    def scenario(side: Side) -> None:
        name = side.name("x").ljust(249, "x")
        side.ask(create(new(name)))
        metadata(side, name)

    both.agree(scenario, NO_ELR)


def test_counts(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in VERSIONS:
            for partitions in (-2, -1, 0, 1, 3, 10_001, 2**31 - 1, -(2**31)):
                for factor in (-2, -1, 0, 1, 2, 3, 32767):
                    topic = new(side.name(f"{version}-{partitions}-{factor}"), partitions, factor)
                    side.ask(create(topic, validate_only=True), version, note=f"{partitions} times {factor}")
        name = side.name("default")
        side.ask(create(new(name, -1, -1)), note="all defaults")
        metadata(side, name)

    both.agree(scenario, NO_ELR)


def test_assignments(both: Both) -> None:
    def scenario(side: Side) -> None:
        cases: list[tuple[Assignments, int, int]] = [
            ([(0, [ME])], -1, -1),
            ([(0, [ME]), (1, [ME])], -1, -1),
            ([(1, [ME]), (0, [ME])], -1, -1),
            ([(0, [ME])], 1, -1),
            ([(0, [ME])], -1, 1),
            ([(0, [ME])], 1, 1),
            ([(0, [ME])], 0, 0),
            ([(0, [])], -1, -1),
            ([(0, [ME, ME])], -1, -1),
            ([(0, [7])], -1, -1),
            ([(0, [ME, 7])], -1, -1),
            ([(0, [-1])], -1, -1),
            ([(0, [ME]), (0, [ME])], -1, -1),
            ([(1, [ME])], -1, -1),
            ([(0, [ME]), (2, [ME])], -1, -1),
            ([(-1, [ME])], -1, -1),
            ([(0, [ME]), (1, [])], -1, -1),
            ([(0, [ME]), (1, [7])], -1, -1),
            ([(0, [ME]), (1, [ME, 7])], -1, -1),
        ]
        for version in VERSIONS:
            for number, (assignments, partitions, factor) in enumerate(cases):
                topic = new(side.name(f"{version}-{number}"), partitions, factor, assignments)
                note = f"{assignments}, {partitions} times {factor}"
                side.ask(create(topic, validate_only=True), version, note=note)

    both.agree(scenario, NO_ELR)


def test_configs(both: Both) -> None:
    def scenario(side: Side) -> None:
        for number, configs in enumerate(CONFIGS):
            topic = new(side.name(str(number)), configs=configs)
            side.ask(create(topic, validate_only=True), note=f"{configs}")
            side.ask(create(topic, validate_only=True), 4, note=f"{configs}")

    both.agree(scenario, NO_ELR)


def test_configs_of_features_to_come(both: Both) -> None:
    def scenario(side: Side) -> None:
        for number, configs in enumerate(FEATURES_TO_COME):
            side.ask(create(new(side.name(str(number)), configs=configs), validate_only=True), note=f"{configs}")

    both.agree(scenario, "features to come")


def test_what_is_told_of_a_new_topic(both: Both) -> None:
    def scenario(side: Side) -> None:
        configs = [("flush.ms", "1000"), ("cleanup.policy", "compact"), ("retention.bytes", "-1")]
        for version in VERSIONS:
            name = side.name(f"v{version}")
            for validate_only in (True, False):
                side.ask(
                    create(new(name, 3, configs=configs), validate_only=validate_only),
                    version,
                    note=f"validate only: {validate_only}",
                )
            metadata(side, name)
            side.ask(create(new(name), validate_only=True), version, note="once more")

    both.agree(scenario, NO_ELR)


def test_several_topics(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in VERSIONS:
            names = [side.name(f"v{version}-{letter}") for letter in "abcd"]
            a, b, c, d = names
            side.ask(
                create(new(a), new(b, 0), new(c), new(c), new("bad name"), new(d, factor=5)),
                version,
                note="some good, some bad",
            )
            metadata(side, a)
            side.ask(create(new(b), new(b), new(b)), version, note="thrice")
            side.ask(create(), version, note="none")
            side.ask(create(new(f"{a}.x"), new(f"{a}_x"), validate_only=True), version, note="names that collide")
        side.ask(
            create(*(new(side.name(f"many-{index}"), 2501) for index in range(4)), validate_only=True), note="4x2501"
        )

    both.agree(scenario, NO_ELR)


def more(name: str, count: int, assignments: Sequence[Sequence[int]] | None = None) -> CreatePartitionsTopic:
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments],
    )


def grow(*topics: CreatePartitionsTopic, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=list(topics), timeout_ms=30_000, validate_only=validate_only)


PLACES: list[list[list[int]]] = [[], [[ME]], [[ME], [ME]], [[]], [[7]], [[ME, ME]], [[ME, 7]], [[-1]]]


def test_more_partitions(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, other = side.topic(partitions=2), side.topic("other")
        for version in range(4):
            for count in (-(2**31), -1, 0, 1, 2, 3):
                side.ask(grow(more(topic, count), validate_only=True), version, note=f"{count}")
            for assignments in PLACES:
                for count in (1, 2, 3, 4):
                    side.ask(
                        grow(more(topic, count, assignments), validate_only=True),
                        version,
                        note=f"{count} on {assignments}",
                    )
            for name in (side.name("absent"), "", "bad name", "__cluster_metadata"):
                side.ask(grow(more(name, 3)), version, note=name)
            side.ask(grow(more(topic, 3), more(topic, 4)), version, note="twice")
            side.ask(grow(more(topic, 3), more(side.name("absent"), 4), validate_only=True), version, note="one good")
            side.ask(grow(), version, note="none")
        side.ask(grow(more(topic, 10_002), validate_only=True), note="10,000 more")
        side.ask(grow(more(topic, 3), more(other, 2, [[ME]])), note="in earnest")
        side.settle_topic(topic, 3)
        side.settle_topic(other, 2)
        metadata(side, topic)
        metadata(side, other)

    both.agree(scenario)


def test_too_many_partitions_at_once(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(partitions=2)
        for count in (10_003, 2**31 - 1):
            side.ask(grow(more(topic, count), validate_only=True), note=f"{count}")

    both.agree(scenario, "too many partitions at once")


def delete(version: int, *names: str, ids: Sequence[bytes] = (), **options: Any) -> DeleteTopicsRequest:
    options = {"timeout_ms": 30_000} | options
    if version < 6:
        return DeleteTopicsRequest(topic_names=list(names), **options)
    topics = [DeleteTopicState(name=name) for name in names]
    return DeleteTopicsRequest(topics=topics + [DeleteTopicState(name=None, topic_id=each) for each in ids], **options)


def test_deleting_topics(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in range(1, 7):
            a, b = side.topic(f"v{version}-a"), side.topic(f"v{version}-b", partitions=3)
            for name in (side.name("absent"), "", "bad name", "__transaction_state", "__cluster_metadata"):
                side.ask(delete(version, name), version, note=name)
            side.ask(delete(version, b, b), version, note="twice")
            side.ask(delete(version, a, side.name("absent"), b), version, note="two and an unknown one")
            side.ask(delete(version, a), version, note="again")
            side.ask(delete(version), version, note="none")

    both.agree(scenario)


def test_deleting_topics_by_id(both: Both) -> None:
    def scenario(side: Side) -> None:
        a, b, c, d = (side.topic(letter) for letter in "abcd")
        both_said = DeleteTopicState(name=a, topic_id=side.id_of(a))
        nothing_said = DeleteTopicState(name=None, topic_id=NO_ID)
        unknown = b"an unknown topic"
        side.ask(DeleteTopicsRequest(topics=[both_said], timeout_ms=30_000), note="name and id")
        side.ask(DeleteTopicsRequest(topics=[nothing_said, both_said], timeout_ms=30_000), note="neither")
        side.ask(delete(6, ids=[unknown]), note="unknown")
        side.ask(delete(6, ids=[unknown, unknown]), note="unknown twice")
        side.ask(delete(6, ids=[side.id_of(a), side.id_of(a)]), note="twice")
        side.ask(delete(6, a, ids=[side.id_of(a)]), note="by name and by id")
        side.ask(delete(6, a, a, ids=[side.id_of(a)]), note="twice by name and by id")
        side.ask(delete(6, ids=[side.id_of(b), unknown]), note="a known and an unknown one")
        side.ask(delete(6, c, ids=[side.id_of(d)]), note="one by name, one by id")
        side.ask(delete(6, ids=[side.id_of(b)]), note="again")

    both.agree(scenario)


def test_no_time_to_do_it_in(both: Both) -> None:
    """Nothing is done."""

    def scenario(side: Side) -> None:
        topic, absent = side.topic(), side.name("absent")
        for timeout_ms in (0, -1, -(2**31)):
            for validate_only in (False, True):
                options = {"timeout_ms": timeout_ms, "validate_only": validate_only}
                note = f"{timeout_ms} ms, validate only: {validate_only}"
                side.ask(CreateTopicsRequest(topics=[new(absent), new(topic), new("bad name")], **options), note=note)
                side.ask(CreatePartitionsRequest(topics=[more(topic, 2), more(absent, 2)], **options), note=note)
            side.ask(
                delete(6, topic, absent, ids=[b"an unknown topic"], timeout_ms=timeout_ms), note=f"{timeout_ms} ms"
            )
            side.ask(delete(5, topic, absent, timeout_ms=timeout_ms), 5, note=f"{timeout_ms} ms")
            side.ask(ListPartitionReassignmentsRequest(topics=None, timeout_ms=timeout_ms), note=f"{timeout_ms} ms")
            for request in (CreateTopicsRequest, CreatePartitionsRequest, DeleteTopicsRequest):
                side.ask(request(timeout_ms=timeout_ms), note=f"nothing in {timeout_ms} ms")
            named = [MetadataRequestTopic(name=name) for name in (topic, absent)]
            side.ask(MetadataRequest(topics=named, allow_auto_topic_creation=False), note="afterwards")

    both.agree(scenario)
