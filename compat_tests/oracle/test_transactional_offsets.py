"""Offsets that a producer commits with its transaction: who may, when they count, and what ends them."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.groups import Client, fetch_offsets, settle_groups, stable
from compat_tests.oracle.sides import Side
from compat_tests.oracle.transactional import (
    Producer,
    add_offsets,
    complete,
    described,
    end,
    init,
    markers,
    settle_transactions,
    write_markers,
)
from kwire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

pytestmark = pytest.mark.xdist_group("oracle")

VERSIONS = range(6)
ADDS_FROM, MEMBERS_FROM = 5, 3
OFFSETS = "__consumer_offsets", 0
"""The partition of all groups: both brokers have one."""


def commit(
    transactional_id: str, producer: Producer, group: str, offsets: dict[tuple[str, int], int], **options: Any
) -> TxnOffsetCommitRequest:
    metadata = options.pop("metadata", "")
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for (topic, index), offset in offsets.items():
        partition = TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata
        )
        topics.setdefault(topic, TxnOffsetCommitRequestTopic(name=topic)).partitions.append(partition)
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=list(topics.values()),
        **options,
    )


def settle(side: Side) -> None:
    settle_groups(side)
    settle_transactions(side)


def look(side: Side, group: str, topic: str, note: str) -> None:
    """Records what a consumer of the group would go on from."""
    for require_stable in (False, True):
        request = fetch_offsets(side, group, {topic: [0, 1]}, require_stable=require_stable)
        side.ask(request, 9, note=f"{note}, {require_stable=}")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("ends_with", [True, False])
def test_they_count_with_the_end_of_the_transaction(version: int, ends_with: bool, both: Both) -> None:
    def scenario(side: Side) -> None:
        settle(side)
        topic, name, group = side.topic(partitions=2), side.name("id"), side.name("group")
        producer = init(side, name)
        if version < ADDS_FROM:
            side.ask(commit(name, producer, group, {(topic, 0): 1}), version, note="not added")
            side.ask(add_offsets(name, producer, group))
        side.ask(commit(name, producer, group, {(topic, 0): 1, (topic, 1): 2}), version)
        side.ask(commit(name, producer, group, {(topic, 0): 3}), version, note="again")
        look(side, group, topic, "open")
        described(side, name)
        side.ask(end(name, producer, commit=ends_with), 5 if version >= ADDS_FROM else 4)
        complete(side, name)
        look(side, group, topic, "ended")
        side.ask(commit(name, producer, group, {(topic, 0): 7}), version, note="of the one before")

    both.agree(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_who_may_commit_them(version: int, both: Both) -> None:
    def scenario(side: Side) -> None:
        settle(side)
        topic, name, group = side.topic(), side.name("id"), side.name("group")
        producer = init(side, name)
        side.call(add_offsets(name, producer, group))
        place = {(topic, 0): 1}
        for note, transactional_id, who, group_id in (
            ("another epoch", name, producer.after(1), group),
            ("an older epoch", name, producer.after(-1), group),
            ("another producer", name, Producer(producer.id + 1000, 0), group),
            ("another transactional id", side.name("other"), producer, group),
            ("no transactional id", "", producer, group),
            ("no group", name, producer, ""),
        ):
            side.ask(commit(transactional_id, who, group_id, place), version, note=note)
        places = {(topic, 0): 1, (topic, 1): 1, (topic, -1): 1, (side.name("absent"), 0): 1}
        side.ask(commit(name, producer, group, places), version, note="unknown places")
        side.ask(commit(name, producer, group, {}), version, note="nothing")
        side.ask(commit(name, producer, group, place, metadata="m" * 4097), version, note="long metadata")
        side.ask(commit(name, producer, group, {(topic, 0): -2}), version, note="a negative offset")
        if version >= MEMBERS_FROM:
            member = Client(side, group, "one")
            stable(member)
            for note, told in (
                ("a member", {"member_id": member.id, "generation_id": member.generation}),
                ("nobody", {"member_id": "nobody", "generation_id": member.generation}),
                ("of the past", {"member_id": member.id, "generation_id": member.generation - 1}),
                ("of the future", {"member_id": member.id, "generation_id": member.generation + 1}),
                ("without a generation", {"member_id": member.id}),
                ("an instance", {"member_id": member.id, "generation_id": 1, "group_instance_id": "none"}),
                ("without a member", {}),
            ):
                side.ask(commit(name, producer, group, place, **told), version, note=note)
            other = commit(name, producer, side.name("another"), place, generation_id=1, member_id="m")
            side.ask(other, version, note="a group that is not there")

    both.agree(scenario)


def test_which_markers_end_them(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle(side)
        topic = side.topic(partitions=2)
        for transaction_version in (0, 1, 2):
            name, group = side.name(f"id-{transaction_version}"), side.name(f"group-{transaction_version}")
            init(side, name)
            producer = init(side, name)
            side.ask(commit(name, producer, group, {(topic, 0): 1}), ADDS_FROM)
            for epochs in (-1, 0, 0, 1, 1):
                marker = markers(producer.after(epochs), OFFSETS, commit=True, transaction_version=transaction_version)
                write_markers(side, marker, note=f"{transaction_version=} {epochs=}")
                look(side, group, topic, f"{transaction_version=} {epochs=}")
            nobody = markers(producer._replace(epoch=-1), OFFSETS, transaction_version=transaction_version)
            write_markers(side, nobody, note="of no epoch")

    both.agree(scenario)
