"""The assignor "range": each topic is cut into ranges, one for each of its members, in the order of their ids.

Where all members subscribe to the same topics and these have as many partitions, each member has the same numbers of
all topics, so that it can join them.
"""

from __future__ import annotations

from kwire.coordinator.groups.consumer.assignors.spec import GroupSpec, MemberSpec
from kwire.coordinator.groups.consumer.member import Partitions


def assign(group: GroupSpec) -> dict[str, Partitions]:
    """The first members of a topic get one partition more where they can't all have as many."""
    members = sorted(group.members.items(), key=_order)
    subscribers: dict[bytes, list[str]] = {}
    for member_id, member in members:
        for topic_id in sorted(member.topics):
            subscribers.setdefault(topic_id, []).append(member_id)
    assignment: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id, _ in members}
    for topic_id, member_ids in subscribers.items():
        quota, extra = divmod(group.partitions[topic_id], len(member_ids))
        start = 0
        for place, member_id in enumerate(member_ids):
            end = start + quota + (place < extra)
            if start < end:
                assignment[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(assignment)


def _order(item: tuple[str, MemberSpec]) -> tuple[bool, str]:
    """Static members first, by instance id: they find their place again when they come back with another member id."""
    member_id, member = item
    return member.instance_id is None, member_id if member.instance_id is None else member.instance_id
