"""The assignor "range": each topic is cut into ranges, one for each of its members, in the order of their ids.

Where all members subscribe to the same topics and these have as many partitions, each member has the same numbers of
all topics, so that it can join them.
"""

from __future__ import annotations

from kwire.coordinator.groups.consumer.assignors.spec import GroupSpec, MemberSpec, subscribers
from kwire.coordinator.groups.consumer.member import Partitions


def assign(group: GroupSpec) -> dict[str, Partitions]:
    """The first members of a topic get one partition more where they can't all have as many."""
    member_ids = [member_id for member_id, _ in sorted(group.members.items(), key=_order)]
    assignment: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in member_ids}
    for topic_id, places in sorted(subscribers(group, member_ids).items()):
        quota, extra = divmod(group.partitions[topic_id], len(places))
        start = 0
        for number, place in enumerate(places):
            end = start + quota + (number < extra)
            if start == end:
                break  # and so for the others
            assignment[member_ids[place]][topic_id] = frozenset(range(start, end))
            start = end
    return dict(assignment)


def _order(item: tuple[str, MemberSpec]) -> tuple[bool, str]:
    """Static members first, by instance id: they find their place again when they come back with another member id."""
    member_id, member = item
    return member.instance_id is None, member_id if member.instance_id is None else member.instance_id
