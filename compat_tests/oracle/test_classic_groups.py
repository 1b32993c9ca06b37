"""Groups of the classic protocol: joining, syncing, heartbeats, leaving."""

from __future__ import annotations

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.groups import PREPARING, SUBSCRIPTION, Client, await_group, settle_groups, stable, subscription
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest
from kwire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity

pytestmark = pytest.mark.xdist_group("oracle")


MORE = subscription("topic", "another")


def described(side: Side, group: str, note: str) -> None:
    side.ask(DescribeGroupsRequest(groups=[group], include_authorized_operations=True), note=note)


def test_one_member_in_all_versions(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        for version in range(10):
            client = Client(side, side.name(f"group-{version}"), "one")
            client.join(version)
            for heartbeat in range(5):
                client.heartbeat(heartbeat)
            client.sync({client: b"mine"}, min(version, 5))
            client.sync({}, min(version, 5))
            client.join(version)
            client.sync({client: b"mine"}, min(version, 5))
            for describe in range(7):
                side.ask(DescribeGroupsRequest(groups=[client.group]), describe)
            client.leave(min(version, 5))
            client.leave(min(version, 5), "again")
            described(side, client.group, "empty")

    both.agree(scenario)


def test_three_members(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        group = side.name("group")
        one, two, three = (Client(side, group, name) for name in ("one", "two", "three"))
        stable(one, two)
        described(side, group, "stable")
        for client in (one, two):
            client.heartbeat()
        three.start_join(protocols=("roundrobin", "range"))
        await_group(side, group, PREPARING, 3)
        for client in (one, two):
            client.heartbeat(note="the third one joins")
        described(side, group, "preparing")
        one.start(one.sync_request())
        one.finish("while others join")
        two.start_join(protocols=("range", "roundrobin"), metadata=MORE)
        one.start_join(protocols=("range", "roundrobin"))
        for client in (one, two, three):
            client.joined()
        described(side, group, "completing")
        for client in (one, two, three):
            client.heartbeat(note="before the assignment")
        two.join(protocols=("range", "roundrobin"), metadata=MORE)
        one.join(protocols=("range", "roundrobin"))
        three.start(three.sync_request())
        one.sync({one: b"of one", three: b"of three"})
        three.finish()
        two.sync()
        described(side, group, "stable again")
        two.join(protocols=("range", "roundrobin"), metadata=MORE)
        two.sync()
        three.leave()
        one.leave()
        two.heartbeat(note="after all others left")
        two.join()
        two.sync({two: b"2"})
        described(side, group, "without the others")

    both.agree(scenario)


def test_a_join_that_changes_nothing_for_a_follower(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        one, two = (Client(side, side.name("group"), name) for name in ("one", "two"))
        stable(one, two)
        two.join()
        two.sync()
        two.start_join(metadata=MORE)
        await_group(side, two.group, PREPARING, 2)
        one.heartbeat(note="a follower changed")
        one.start_join()
        two.joined()
        one.joined()

    both.agree(scenario)


def test_requests_that_do_not_fit(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        client = Client(side, side.name("group"), "one")
        stable(client)
        topic = side.topic()
        member, generation = client.id, client.generation
        for group in (client.group, side.name("absent"), ""):
            for member_id in (member, "", "nobody", "m" * 20_000):
                for generation_id in (generation, generation - 1, generation + 1, -1, -2, 2**31 - 1):
                    note = f"{group[-6:]!r} {member_id == member or member_id[:6]!r} {generation_id}"
                    told = {"group_id": group, "member_id": member_id, "generation_id": generation_id}
                    client.heartbeat(note=note, **told)
                    client.heartbeat(0, note, **told)
                    client.ask(client.sync_request(**told), 5, note)
                    client.ask(client.sync_request(version=0, **told), 0, note)
                    if group != "" or generation_id >= 0:
                        del told["generation_id"]
                        told["generation_id_or_member_epoch"] = generation_id
                        for version in (2, 8, 9):
                            client.commit(topic, 5, version, note, **told)
        client.heartbeat(note="nothing has happened to it")

    both.agree(scenario)


def test_joins_that_do_not_fit(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        client = Client(side, side.name("group"), "one")
        stable(client)
        cases = {
            "no group": {"group_id": ""},
            "an unknown member": {"member_id": "nobody"},
            "an unknown member of no group": {"member_id": "nobody", "group_id": side.name("absent")},
            "a session too short": {"session_timeout_ms": 5999, "member_id": ""},
            "a session too long": {"session_timeout_ms": 1_800_001},
            "a negative session": {"session_timeout_ms": -1},
            "no protocols": {"protocols": []},
            "no protocols of a new one": {"protocols": [], "member_id": ""},
            "an unknown instance": {"group_instance_id": "instance"},
            "another protocol": {"protocols": ["other"], "member_id": ""},
            "another type": {"protocol_type": "connect", "member_id": ""},
            "no type": {"protocol_type": ""},
            "no type in a new group": {"protocol_type": "", "group_id": side.name("new"), "member_id": ""},
            "no protocols in a new group": {"protocols": [], "group_id": side.name("newer"), "member_id": ""},
            "a session too long in a new group": {"session_timeout_ms": 1 << 30, "group_id": side.name("newest")},
        }
        for version in (0, 3, 4, 6, 7, 9):
            for note, options in cases.items():
                if version < 5 and "group_instance_id" in options:
                    continue
                client.ask(client.join_request(version, **options), version, note)
        for group in ("new", "newer", "newest"):
            described(side, side.name(group), group)
        other = Client(side, side.name("gigantic") + "g" * 30_000, "other")
        other.join(protocols=["p" * 30_000], metadata=SUBSCRIPTION + b"m" * 200_000)
        other.ask(other.sync_request({other: b"a" * 100_000}, protocol_name="p" * 30_000))
        described(side, other.group, "gigantic")
        client.heartbeat(note="nothing has happened to it")

    both.agree(scenario)


def test_syncs_of_another_protocol(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        client = Client(side, side.name("group"), "one")
        client.join()
        for protocol_type in ("consumer", "connect", "", None):
            for name in ("range", "other", "", None):
                request = client.sync_request(protocol_type=protocol_type, protocol_name=name)
                client.ask(request, note=f"{protocol_type!r} {name!r}")

    both.agree(scenario)


def test_static_members(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        for version in (5, 8, 9):
            group = side.name(f"group-{version}")
            one = Client(side, group, "one", instance_id="first")
            two = Client(side, group, "two", instance_id="second")
            three = Client(side, group, "three")
            topic = side.topic(f"topic-{version}")
            stable(one, two, three)
            for old in (two, one):
                again = Client(side, group, f"{old.name} again", instance_id=old.instance_id)
                again.join(version)
                again.sync()
                again.heartbeat()
                old.heartbeat(note="of the fenced one")
                old.ask(old.sync_request(), note="of the fenced one")
                old.ask(old.join_request(), note="of the fenced one")
                old.commit(topic, 3, note="of the fenced one")
                old.leave(note="of the fenced one")
                again.commit(topic, 4)
                described(side, group, f"{old.name} came again")
            three.heartbeat(note="nobody rebalances")
            gone = [MemberIdentity(member_id="", group_instance_id=name) for name in ("first", "third", None)]
            side.ask(LeaveGroupRequest(group_id=group, members=gone), note="removed by an admin")
            described(side, group, "one is left")

    both.agree(scenario)


def test_static_members_that_come_again_in_a_rebalance(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        group = side.name("group")
        one = Client(side, group, "one", instance_id="first")
        two = Client(side, group, "two", instance_id="second")
        stable(one, two)
        two.start_join(metadata=MORE)
        await_group(side, two.group, PREPARING, 2)
        one.heartbeat(note="a rebalance")
        again = Client(side, group, "again", instance_id="second")
        again.start_join()
        two.joined("fenced while it waited")
        one.start_join()
        again.joined()
        one.joined()
        again.start(again.sync_request())
        one.heartbeat()
        third = Client(side, group, "third", instance_id="second")
        third.start_join()
        again.finish("fenced while it waited for its assignment")
        await_group(side, group, PREPARING, 2)
        one.heartbeat(note="a rebalance")
        one.start_join()
        third.joined()
        one.joined()
        described(side, group, "completing")

    both.agree(scenario)


def test_a_static_member_that_comes_again_with_other_protocols(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        group = side.name("group")
        one = Client(side, group, "one", instance_id="first")
        one.join(protocols=("range", "sticky"))
        one.sync({one: b"mine"})
        again = Client(side, group, "again", instance_id="first")
        again.join(protocols=("sticky", "range"))
        described(side, group, "another protocol is liked best")
        again.ask(again.sync_request({again: b"other"}, protocol_name="sticky"))

    both.agree(scenario)


def test_an_id_that_was_given(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        client = Client(side, side.name("group"), "one")
        response = client.ask(client.join_request())
        client.ask(client.join_request(member_id=response.member_id))

    both.agree(scenario)


def test_leaving(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        group = side.name("group")
        one, two, three = (Client(side, group, name) for name in ("one", "two", "three"))
        stable(one, two, three)
        given = Client(side, group, "given")
        pending = given.ask(given.join_request()).member_id
        for version in range(6):
            for member in ("nobody", ""):
                one.ask(
                    LeaveGroupRequest(group_id=group, member_id=member)
                    if version < 3
                    else LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member)]),
                    version,
                    member,
                )
        members = [MemberIdentity(member_id=member) for member in (pending, "nobody", two.id, two.id)]
        side.ask(LeaveGroupRequest(group_id=group, members=members), note="several")
        side.ask(LeaveGroupRequest(group_id=group, members=[]), note="nobody")
        side.ask(LeaveGroupRequest(group_id="", members=members), note="no group")
        side.ask(LeaveGroupRequest(group_id=side.name("absent"), members=members), note="an unknown group")
        described(side, group, "preparing")
        one.start_join()
        three.leave(note="while the others join")
        one.joined()
        described(side, group, "one is left")

    both.agree(scenario)
