"""The assignor "uniform": no member has two partitions more than another, and what may stay where it was does."""

from __future__ import annotations

from itertools import islice

from kwire.coordinator.groups.consumer.assignors import overlapping
from kwire.coordinator.groups.consumer.assignors.spec import GroupSpec
from kwire.coordinator.groups.consumer.member import Partitions


def assign(group: GroupSpec) -> dict[str, Partitions]:
    """Balance comes before stickiness."""
    if not group.members:
        return {}
    if not group.homogeneous:
        return overlapping.assign(group)
    return _assign_homogeneous(group)


def _assign_homogeneous(group: GroupSpec) -> dict[str, Partitions]:
    topics = sorted(next(iter(group.members.values())).topics)
    if not topics:
        return {}
    subscribed = set(topics)
    taken = {
        (topic_id, index)
        for member in group.members.values()
        for topic_id, indexes in member.target.items()
        for index in indexes
    }
    free = [
        (topic_id, index)
        for topic_id in topics
        for index in range(group.partitions[topic_id])
        if (topic_id, index) not in taken
    ]
    quota, extra = divmod(sum(group.partitions[topic_id] for topic_id in topics), len(group.members))
    assignment: dict[str, Partitions] = {}
    unfilled: list[tuple[str, int]] = []
    member_ids = sorted(group.members)
    for place, member_id in enumerate(member_ids):
        target = group.members[member_id].target
        room = quota + (extra > 0)
        keeps: dict[bytes, frozenset[int]] = {}
        for topic_id, indexes in target.items():
            if topic_id not in subscribed:
                continue
            if len(indexes) <= room:
                stay = indexes
            else:
                ordered = sorted(indexes)
                stay = frozenset(ordered[:room])
                free += [(topic_id, index) for index in ordered[room:]]
            room -= len(stay)
            if stay:
                keeps[topic_id] = stay
        assignment[member_id] = target if keeps == target else keeps
        takes_extra = extra > 0
        if takes_extra and room and len(member_ids) - place > extra:
            # Somebody later may already have one partition more, which then need not move.
            takes_extra = False
            room -= 1
        if room:
            unfilled.append((member_id, room))
        extra -= takes_extra
    rest = iter(free)
    for member_id, room in unfilled:
        new: dict[bytes, set[int]] = {}
        for topic_id, index in islice(rest, room):
            new.setdefault(topic_id, set()).add(index)
        old = assignment[member_id]
        assignment[member_id] = {**old, **{topic: old.get(topic, frozenset()) | new[topic] for topic in new}}
    return assignment
