"""ListGroups, DescribeGroups, DeleteGroups and FindCoordinator."""

from __future__ import annotations

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.consumer_groups import Member
from compat_tests.oracle.groups import (
    PREPARING,
    Client,
    await_group,
    commit_request,
    list_groups,
    settle_groups,
    stable,
)
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kwire.protocol.messages.delete_groups import DeleteGroupsRequest
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest

pytestmark = pytest.mark.xdist_group("oracle")


def every_state(side: Side) -> dict[str, Client]:
    """A group in each state, by its state."""
    topic = side.topic()
    clients = {name: Client(side, side.name(name), "one") for name in ("stable", "completing", "preparing", "empty")}
    stable(clients["stable"])
    clients["completing"].join()
    stable(clients["preparing"])
    other = Client(side, side.name("preparing"), "other")
    other.start_join()
    await_group(side, other.group, PREPARING, 2)
    clients["empty"].join()
    clients["empty"].leave()
    side.ask(commit_request(side, side.name("simple"), {topic: [(0, 1)]}))
    given = Client(side, side.name("pending"), "given")
    given.ask(given.join_request())
    worker = Client(side, side.name("workers"), "worker")
    worker.join(protocol_type="connect")
    return clients


def test_lists(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        every_state(side)
        prefix = side.name("")
        for version in range(6):
            list_groups(side, prefix, version, "all")
        for version in (4, 5):
            for states in (["Stable"], ["stable", " EMPTY "], ["PreparingRebalance"], ["nonsense"], [""], ["Dead"]):
                list_groups(side, prefix, version, f"{states}", states_filter=states)
        for types in (["classic"], ["CLASSIC", "consumer"], ["consumer"], [" classic"], ["nonsense"], [""]):
            list_groups(side, prefix, 5, f"{types}", types_filter=types)
            list_groups(side, prefix, 5, f"stable {types}", types_filter=types, states_filter=["Stable"])

    both.agree(scenario)


def test_descriptions(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        every_state(side)
        names = ["stable", "completing", "preparing", "empty", "simple", "pending", "workers", "absent"]
        groups = [side.name(name) for name in names] + ["", "g" * 20_000]
        for version in range(7):
            side.ask(DescribeGroupsRequest(groups=groups), version)
            if version >= 3:
                request = DescribeGroupsRequest(groups=groups, include_authorized_operations=True)
                side.ask(request, version, note="with operations")
        side.ask(DescribeGroupsRequest(groups=[]), note="none")
        side.ask(DescribeGroupsRequest(groups=groups[:1] * 2), note="twice")

    both.agree(scenario)


def test_deletions(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        every_state(side)
        names = ["stable", "completing", "preparing", "workers", "absent"]
        for version in range(3):
            groups = [side.name(name) for name in names]
            side.ask(DeleteGroupsRequest(groups_names=groups), version)
            side.ask(DeleteGroupsRequest(groups_names=[""]), version)
            side.ask(DeleteGroupsRequest(groups_names=[]), version)
        for name in ("empty", "simple", "pending"):
            for _ in range(2):
                side.ask(DeleteGroupsRequest(groups_names=[side.name(name)] * 2), note=name)
            side.ask(DescribeGroupsRequest(groups=[side.name(name)]), note=name)

    both.agree(scenario)


def test_coordinators(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        for version in range(4):
            for key in ("group", "", "g" * 20_000):
                side.ask(FindCoordinatorRequest(key=key), version, note=key[:5])
        for version in (4, 5, 6):
            for keys in (["group"], ["one", "two", "one"], [""], []):
                side.ask(FindCoordinatorRequest(coordinator_keys=keys), version, note=f"{keys}")
        for version in (1, 3, 4, 5, 6):
            for kind in (3, -1, 127):
                if version >= 4:
                    side.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]), version, note=f"{kind}")
                else:
                    side.ask(FindCoordinatorRequest(key_type=kind, key="x"), version, note=f"{kind}")

    both.agree(scenario)


def test_answers_that_do_not_fit(both: Both) -> None:
    """A member id is made of the client's, and errors name the group: both become longer than a string may be."""

    def scenario(side: Side) -> None:
        settle_groups(side)
        longest = "x" * 0x7FFF
        client = Client(side, side.name("joins"), longest)
        client.ask(client.join_request(), 3)
        side.ask(DescribeGroupsRequest(groups=[longest]), note="absent")
        side.ask(ConsumerGroupDescribeRequest(group_ids=[longest]), note="absent")
        topic = side.topic()
        Member(side, longest, "member", topic).join(server_assignor=longest)
        side.ask(DescribeGroupsRequest(groups=[side.name("absent")]), note="the connection goes on")

    both.agree(scenario)


def test_share_coordinators(both: Both) -> None:
    def scenario(side: Side) -> None:
        request = FindCoordinatorRequest(key_type=2, coordinator_keys=["group:AAAAAAAAAAAAAAAAAAAAAQ:0"])
        for version in (4, 5):
            side.ask(request, version, note="share")
        side.ask(request, 6, note="share")

    both.agree(scenario, "no share groups")
