"""Which brokers hold a partition: placement of new replicas, and the checks on an assignment made by hand.

Placement is striped, as Kafka's: the replicas of one partition go around the racks, the next partition starts one rack
further, and within a rack each turn starts one broker further. Both start at a random place, so that many small topics
do not all begin on the same broker. A fenced broker is taken only when its rack has no other left, and never as the
first replica, which becomes the leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kwire.metadata.image import BrokerImage
from kwire.ports.randomness import Randomness
from kwire.protocol.errors import ErrorCode, KafkaError


class Candidate(Protocol):
    """What placement asks of a broker; `BrokerImage` has it."""

    @property
    def id(self) -> int: ...
    @property
    def rack(self) -> str | None: ...
    @property
    def fenced(self) -> bool: ...


class _Ring:
    """Brokers in a circle, dealt out from a starting point that moves on with each round."""

    __slots__ = ("_dealt", "_ids", "_round", "_start")

    def __init__(self, ids: list[int], randomness: Randomness) -> None:
        self._ids = sorted(ids)
        self._start = randomness.below(len(ids)) if ids else 0
        self._round = 0
        self._dealt = 0

    def next(self, round_number: int) -> int | None:
        """The next broker of this round; None when all were dealt."""
        ids = self._ids
        if round_number != self._round and ids:
            self._start = (self._start + 1) % len(ids)
            self._round = round_number
            self._dealt = 0
        if self._dealt >= len(ids):
            return None
        self._dealt += 1
        return ids[(self._start + self._dealt - 1) % len(ids)]

    def shuffle(self, randomness: Randomness) -> None:
        _shuffle(self._ids, randomness)


class _Rack:
    __slots__ = ("fenced", "unfenced")

    def __init__(self, brokers: list[Candidate], randomness: Randomness) -> None:
        self.unfenced = _Ring([broker.id for broker in brokers if not broker.fenced], randomness)
        self.fenced = _Ring([broker.id for broker in brokers if broker.fenced], randomness)

    def next(self, round_number: int) -> int | None:
        broker = self.unfenced.next(round_number)
        return self.fenced.next(round_number) if broker is None else broker


class _Racks:
    """All racks in a circle. One `place` call gives one partition its replicas."""

    def __init__(self, brokers: Sequence[Candidate], randomness: Randomness) -> None:
        by_name: dict[str, list[Candidate]] = {}
        for broker in brokers:
            by_name.setdefault(broker.rack or "", []).append(broker)
        self._randomness = randomness
        self._racks = [_Rack(by_name[name], randomness) for name in sorted(by_name)]
        self._unfenced = sum(not broker.fenced for broker in brokers)
        self._start = randomness.below(len(self._racks))
        self._round = 0

    def place(self, replication_factor: int) -> tuple[int, ...]:
        racks = self._racks
        if self._round and self._round % self._unfenced == 0:
            self._shuffle()  # every starting point was used once; the same assignments would come again
        self._round += 1
        leader_rack = self._start
        while (leader := racks[leader_rack].unfenced.next(self._round)) is None:
            leader_rack = (leader_rack + 1) % len(racks)
        replicas = [leader]
        turn = self._start
        leader_rack_waits = True
        while len(replicas) < replication_factor:
            if leader_rack_waits and turn == leader_rack:
                leader_rack_waits = False  # it gave the leader: its turn in the first tour is over
            elif (follower := racks[turn].next(self._round)) is not None:
                replicas.append(follower)
            turn = (turn + 1) % len(racks)
        self._start = (self._start + 1) % len(racks)
        return tuple(replicas)

    def _shuffle(self) -> None:
        _shuffle(self._racks, self._randomness)
        for rack in self._racks:
            rack.unfenced.shuffle(self._randomness)
            rack.fenced.shuffle(self._randomness)


def _shuffle(items: list, randomness: Randomness) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = randomness.below(last + 1)
        items[last], items[other] = items[other], items[last]


def place(
    brokers: Iterable[Candidate], partitions: int, replication_factor: int, randomness: Randomness
) -> list[tuple[int, ...]]:
    """The replicas of `partitions` new partitions, each a tuple of distinct broker ids, the preferred leader first.

    Raises INVALID_REPLICATION_FACTOR where the brokers do not suffice.
    """
    candidates = list(brokers)
    if replication_factor <= 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Invalid replication factor {replication_factor}: the replication factor must be positive.",
        )
    if all(broker.fenced for broker in candidates):
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "All brokers are currently fenced.")
    if replication_factor > len(candidates):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(candidates)} broker(s) are registered or some brokers have all their log directories cordoned.",
        )
    if len(candidates) == 1:
        return [(candidates[0].id,)] * partitions
    racks = _Racks(candidates, randomness)
    return [racks.place(replication_factor) for _ in range(partitions)]


def check_manual_assignment(
    brokers: Mapping[int, BrokerImage], replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT where replicas given by hand are empty, unknown or twice the same broker.

    `replication_factor` is what the topic's other partitions have; None for the first of a new topic.
    """
    if not replicas:
        raise _invalid("includes an empty replica list.")
    previous = None
    for broker in sorted(replicas):
        if broker not in brokers:
            raise _invalid(f"includes broker {broker}, but no such broker is registered.")
        if broker == previous:
            raise _invalid(f"includes the broker {broker} more than once.")
        previous = broker
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"includes a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {replication_factor} replica(s)."
        )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {reason}")
