"""The assignor "uniform" where members subscribe to different topics: as balanced as their subscriptions let it be.

Topics with many partitions for each subscriber come first, since the others can make up for them. Then partitions move
from a topic's most loaded subscribers to its least loaded, topic after topic, until no move helps.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace, nsmallest

from kwire.coordinator.groups.consumer.assignors.spec import GroupSpec, subscribers
from kwire.coordinator.groups.consumer.member import Partitions

MAX_ROUNDS = 16
"""Over all topics. Two are enough unless subscriptions overlap; then each about halves what is out of balance."""


def assign(group: GroupSpec) -> dict[str, Partitions]:
    """For members that subscribe to at least one topic; the others get nothing."""
    state = _Assignment(group)
    state.keep()
    topics = state.in_order(state.owners)
    for topic_id in topics:
        state.hand_out(topic_id)
    shared = [topic_id for topic_id in topics if len(state.subscribers[topic_id]) > 1]
    settled = 0
    for _ in range(MAX_ROUNDS):
        for topic_id in shared:
            settled = 0 if state.balance(topic_id) else settled + 1
            if settled >= len(shared):
                return state.result()
    return state.result()


class _Assignment:
    """An assignment on its way. Members are numbers, in the order of their ids."""

    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._ids = sorted(group.members)
        self._sizes = [0] * len(self._ids)
        self.subscribers = subscribers(group, self._ids)
        self.owners: dict[bytes, list[int | None]] = {
            topic_id: [None] * group.partitions[topic_id] for topic_id in self.subscribers
        }
        self._even: set[int] = set()
        """Which lists of subscribers were seen to be balanced since a partition moved."""

    def in_order(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        """Those with most partitions for each subscriber first."""
        counts = {topic_id: len(self.subscribers[topic_id]) for topic_id in topic_ids}
        return sorted(
            counts,
            key=lambda topic_id: (-self._group.partitions[topic_id] / counts[topic_id], counts[topic_id], topic_id),
        )

    def keep(self) -> None:
        """Everybody keeps what he had of the topics that he subscribes to."""
        for number, member_id in enumerate(self._ids):
            member = self._group.members[member_id]
            for topic_id, indexes in member.target.items():
                if topic_id in member.topics:
                    for index in indexes:
                        self._give(topic_id, index, number)

    def hand_out(self, topic_id: bytes) -> None:
        """Partitions that nobody has go to whoever has least."""
        free = [index for index, owner in enumerate(self.owners[topic_id]) if owner is None]
        if not free:
            return
        takers = nsmallest(len(free), self.subscribers[topic_id], key=self._sizes.__getitem__)
        least = [(self._sizes[number], number) for number in takers]
        heapify(least)
        for index in free:
            size, number = least[0]
            heapreplace(least, (size + 1, number))
            self._give(topic_id, index, number)

    def balance(self, topic_id: bytes) -> bool:
        """Moves partitions from subscribers that have most to those that have least. Whether any moved."""
        sizes = self._sizes
        takers = self.subscribers[topic_id]
        if id(takers) in self._even:
            return False
        if max(map(sizes.__getitem__, takers)) - min(map(sizes.__getitem__, takers)) <= 1:
            self._even.add(id(takers))
            return False
        has: dict[int, list[int]] = {}
        for index, owner in enumerate(self.owners[topic_id]):
            if owner is not None:
                has.setdefault(owner, []).append(index)
        most = [(-sizes[number], -number) for number in has]
        least = [(sizes[number], number) for number in takers]
        heapify(most)
        heapify(least)
        moved = False
        while most:
            giver = -heappop(most)[1]
            while least[0][0] != sizes[least[0][1]]:
                heappop(least)  # it has changed since, and is in the heap again
            taker = least[0][1]
            if sizes[giver] - sizes[taker] <= 1:
                break
            self._give(topic_id, has[giver].pop(), taker)
            moved = True
            heapreplace(least, (sizes[taker], taker))
            heappush(least, (sizes[giver], giver))
            if has[giver]:
                heappush(most, (-sizes[giver], -giver))
        if moved:
            self._even.clear()
        return moved

    def _give(self, topic_id: bytes, index: int, number: int) -> None:
        owners = self.owners[topic_id]
        before = owners[index]
        if before is not None:
            self._sizes[before] -= 1
        owners[index] = number
        self._sizes[number] += 1

    def result(self) -> dict[str, Partitions]:
        """The assignment of all members."""
        new: list[dict[bytes, set[int]]] = [{} for _ in self._ids]
        for topic_id, owners in self.owners.items():
            for index, owner in enumerate(owners):
                if owner is not None:
                    new[owner].setdefault(topic_id, set()).add(index)
        return {
            member_id: {topic_id: frozenset(indexes) for topic_id, indexes in topics.items()}
            for member_id, topics in zip(self._ids, new, strict=True)
        }
