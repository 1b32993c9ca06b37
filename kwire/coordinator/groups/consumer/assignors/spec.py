"""What an assignor is told of a group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from kwire.coordinator.groups.consumer.member import Partitions


class MemberSpec(NamedTuple):
    """`topics`: ids of the existing topics it subscribes to; `target`: what it had in the target assignment before."""

    topics: frozenset[bytes]
    target: Partitions
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    """`partitions`: how many each subscribed topic has; `homogeneous`: whether all subscribe to the same topics."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[bytes, int]
    homogeneous: bool


def subscribers(group: GroupSpec, member_ids: Sequence[str]) -> dict[bytes, list[int]]:
    """By topic id, the members that subscribe to it, by their places in `member_ids`, in that order.

    Topics with the same subscribers have the same list. Most members subscribe to what others do.
    """
    alike: dict[frozenset[bytes], list[int]] = {}
    for place, member_id in enumerate(member_ids):
        alike.setdefault(group.members[member_id].topics, []).append(place)
    crowds: dict[bytes, list[int]] = {}
    for number, topics in enumerate(alike):
        for topic_id in topics:
            crowds.setdefault(topic_id, []).append(number)
    places = list(alike.values())
    merged: dict[tuple[int, ...], list[int]] = {}
    for numbers in map(tuple, crowds.values()):
        if numbers not in merged:
            merged[numbers] = sorted(chain.from_iterable(places[number] for number in numbers))
    return {topic_id: merged[tuple(numbers)] for topic_id, numbers in crowds.items()}


Assignor = Callable[[GroupSpec], dict[str, Partitions]]
"""The new target assignment, by member id. A member that is not in it gets nothing."""
