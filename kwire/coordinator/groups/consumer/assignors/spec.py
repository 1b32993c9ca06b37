"""What an assignor is told of a group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from kwire.coordinator.groups.consumer.member import Partitions


class MemberSpec(NamedTuple):
    """`topics`: ids of the existing topics it subscribes to; `target`: what it had in the target assignment before."""

    topics: Collection[bytes]
    target: Partitions
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    """`partitions`: how many each subscribed topic has; `homogeneous`: whether all subscribe to the same topics."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[bytes, int]
    homogeneous: bool


Assignor = Callable[[GroupSpec], dict[str, Partitions]]
"""The new target assignment, by member id. A member that is not in it gets nothing."""
