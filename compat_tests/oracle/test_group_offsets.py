"""Offsets of groups: committing, fetching and deleting them, and what is written of it."""

from __future__ import annotations

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.groups import Client, commit_request, fetch_offsets, settle_groups, stable, subscription
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.delete_groups import DeleteGroupsRequest
from kwire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kwire.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

pytestmark = pytest.mark.xdist_group("oracle")

COMMITS, FETCHES = range(2, 11), range(1, 11)


def delete_request(group: str, topics: dict[str, list[int]]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            )
            for name, indexes in topics.items()
        ],
    )


def test_commits_and_fetches_in_all_versions(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, other = side.topic(partitions=2), side.topic("other")
        for version in COMMITS:
            group = side.name(f"group-{version}")
            request = commit_request(
                side,
                group,
                {topic: [(0, version), (1, 2**63 - 1)], other: [(0, 0)]},
                version,
                metadata=f"by {version}",
                leader_epoch=version if version >= 6 else -1,
            )
            side.ask(request, version)
            for fetch in FETCHES:
                side.ask(fetch_offsets(side, group, {topic: [0, 1], other: [0]}, fetch), fetch, note=f"of {version}")
                if fetch >= 2:
                    side.ask(fetch_offsets(side, group, None, fetch), fetch, note=f"all of {version}")

    both.agree(scenario)


def test_offsets_and_metadata_out_of_the_ordinary(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = side.topic(), side.name("group")
        for version in (2, 7, 8, 9):
            for offset in (-1, -2, -(2**63), 2**63 - 1):
                side.ask(commit_request(side, group, {topic: [(0, offset)]}, version), version, note=f"{offset}")
                side.ask(fetch_offsets(side, group, {topic: [0]}))
            texts = {
                "null": None,
                "4096": "m" * 4096,
                "4097": "m" * 4097,
                "2048 pairs": "\U0001f600" * 2048,
                "2049": "\U0001f600" * 2049,
            }
            for note, metadata in texts.items():
                request = commit_request(side, group, {topic: [(0, version)]}, version, metadata=metadata)
                side.ask(request, version, note=note)
                side.ask(fetch_offsets(side, group, {topic: [0]}))

    both.agree(scenario)


def test_partitions_that_are_not_there(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group, absent = side.topic(partitions=2), side.name("group"), side.name("absent")
        cases = {
            "some": {topic: [(0, 1), (2, 1), (-1, 1)], absent: [(0, 1), (1, 1)]},
            "none": {absent: [(0, 1)]},
            "nothing": {},
            "no partitions": {topic: []},
            "twice": {topic: [(0, 1), (0, 2)]},
        }
        for version in (2, 6, 9, 10):
            for note, offsets in cases.items():
                side.ask(commit_request(side, group, offsets, version), version, note=note)
            for name in ("", "bad name"):
                if version < 10:
                    side.ask(commit_request(side, group, {name: [(0, 1)]}, version), version, note=name)
        for version in FETCHES:
            for note, offsets in cases.items():
                asked = {name: [index for index, _ in partitions] for name, partitions in offsets.items()}
                side.ask(fetch_offsets(side, group, asked, version), version, note=note)
                side.ask(fetch_offsets(side, side.name("nobody"), asked, version), version, note=f"{note} of nobody")

    both.agree(scenario)


def test_groups_that_are_not_there_and_ids_out_of_the_ordinary(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic = side.topic()
        for version in (2, 8, 9, 10):
            for generation in (-1, -5, 0, 5):
                for member in ("", "nobody"):
                    group = side.name(f"{version} {generation} {member}")
                    request = commit_request(
                        side,
                        group,
                        {topic: [(0, 1)]},
                        version,
                        generation_id_or_member_epoch=generation,
                        member_id=member,
                    )
                    side.ask(request, version, note=f"{generation} {member}")
                    side.ask(fetch_offsets(side, group, {topic: [0]}))
        for group in ("", "ä ö", "g" * 20_000):
            side.ask(commit_request(side, group, {topic: [(0, 3)]}), note=group[:5])
            side.ask(fetch_offsets(side, group, {topic: [0]}), note=group[:5])
            side.ask(delete_request(group, {topic: [0]}), note=group[:5])
            side.ask(DeleteGroupsRequest(groups_names=[group]), note=group[:5])

    both.agree(scenario)


def test_an_instance_that_nobody_is(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = side.topic(), side.name("group")
        for version in (7, 9):
            options = {"group_instance_id": "instance"}
            side.ask(commit_request(side, group, {topic: [(0, 1)]}, version, **options), version)
        client = Client(side, group, "one", instance_id="mine")
        stable(client)
        for version in (7, 9):
            for instance in ("instance", "mine"):
                for member in (client.id, "", "other"):
                    client.commit(topic, 1, version, group_instance_id=instance, member_id=member)

    both.agree(scenario)


def test_a_retention_of_its_own(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic = side.topic()
        for version in (2, 3, 4):
            for retention in (-1, 0, 1, 3_600_000, -2, 2**62):
                group = side.name(f"group-{version}-{retention}")
                request = commit_request(side, group, {topic: [(0, 1)]}, version, retention_time_ms=retention)
                side.ask(request, version, note=f"{retention}")
                side.ask(fetch_offsets(side, group, {topic: [0]}))

    both.agree(scenario)


def test_more_than_fits_into_a_batch(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = side.topic(partitions=300), side.name("group")
        for version in (2, 9):
            many = {topic: [(index, 1) for index in range(300)]}
            side.ask(commit_request(side, group, many, version, metadata="m" * 4096), version)
            side.ask(fetch_offsets(side, group, {topic: [0, 299]}))
        client = Client(side, group, "one")
        client.join()
        client.sync({client: b"a" * 1_500_000})
        client.heartbeat()
        client.join()
        client.sync({client: b"a"})

    both.agree(scenario)


def test_several_groups_at_once(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic = side.topic()
        one, two = side.name("one"), side.name("two")
        for group, offset in ((one, 1), (two, 2)):
            side.ask(commit_request(side, group, {topic: [(0, offset)]}))
        for version in (8, 9, 10):
            named = {"topic_id": side.id_of(topic)} if version >= 10 else {"name": topic}
            topics = [OffsetFetchRequestTopics(**named, partition_indexes=[0, 1])]
            groups = [
                OffsetFetchRequestGroup(group_id=one, topics=topics),
                OffsetFetchRequestGroup(group_id=two, topics=None),
                OffsetFetchRequestGroup(group_id=side.name("absent"), topics=topics),
                OffsetFetchRequestGroup(group_id=side.name("absent too"), topics=None),
                OffsetFetchRequestGroup(group_id="", topics=[]),
            ]
            for require_stable in (True, False):
                side.ask(OffsetFetchRequest(groups=groups, require_stable=require_stable), version)
            if version >= 9:
                member = OffsetFetchRequestGroup(group_id=one, topics=None, member_id="nobody", member_epoch=3)
                side.ask(OffsetFetchRequest(groups=[member]), version, note="of a member")
        side.ask(OffsetFetchRequest(groups=[]), note="no group")

    both.agree(scenario)


def test_deleting_offsets(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, other, group = side.topic(partitions=2), side.topic("other"), side.name("group")
        absent = side.name("absent")
        for case in ({topic: [0]}, {}, {absent: [0]}):
            side.ask(delete_request(group, case), note="no such group")
            side.ask(delete_request("", case), note="no group")
        side.ask(commit_request(side, group, {topic: [(0, 1), (1, 2)], other: [(0, 3)]}))
        for case in ({topic: [0, 5, -1], absent: [0]}, {topic: [0]}, {absent: [0]}, {}, {topic: []}, {topic: [1, 1]}):
            side.ask(delete_request(group, case))
            side.ask(fetch_offsets(side, group, None))
        client = Client(side, side.name("members"), "one")
        client.join(metadata=subscription(topic))
        client.sync({client: b"mine"})
        for name in (topic, other):
            client.commit(name, 5)
        side.ask(delete_request(client.group, {topic: [0], other: [0], absent: [0]}))
        workers = Client(side, side.name("workers"), "worker")
        workers.join(protocol_type="connect")
        workers.sync({workers: b"work"}, protocol_type="connect")
        workers.commit(topic, 5)
        side.ask(delete_request(workers.group, {topic: [0]}))
        for member in (client, workers):
            member.leave()
            side.ask(delete_request(member.group, {topic: [0]}), note="nobody is left")
            side.ask(fetch_offsets(side, member.group, None))

    both.agree(scenario)
