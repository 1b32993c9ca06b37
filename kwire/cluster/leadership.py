"""What a leader keeps of its followers: how far they are, who is in sync, and the high watermark that follows from it.

The high watermark is the smallest end offset over the maximal ISR: the one the controller agreed on, and whom this
leader has proposed to add. A replica proposed for removal still counts until the controller agrees (KIP-497). The high
watermark never goes back, and stands still while the ISR is smaller than `min.insync.replicas` (KIP-966).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from kwire.cluster.follower import Follower
from kwire.cluster.isr import ANY_EPOCH, IsrProposal, may_join
from kwire.metadata.image import BrokerImage, PartitionImage
from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.cluster.partition import Partition
    from kwire.storage.log import Log


_NOBODY: Final[dict[int, Follower]] = {}
"""The followers of a partition with one replica. Never filled."""


class Surroundings(Protocol):
    """What partitions ask of their broker; the ReplicaManager is it."""

    @property
    def broker_id(self) -> int: ...
    @property
    def brokers(self) -> Mapping[int, BrokerImage]:
        """Of the newest image."""

    @property
    def max_lag_ms(self) -> int:
        """`replica.lag.time.max.ms`."""

    @property
    def propose_isr(self) -> Callable[[IsrProposal], None]: ...
    def now_ms(self) -> int:
        """On a monotonic clock."""


class Leadership:
    """One partition's leader side; it lives from becoming leader to ceasing to be."""

    __slots__ = (
        "_partition",
        "_pending",
        "_surroundings",
        "followers",
        "isr",
        "log",
        "maximal_isr",
        "since_epoch",
    )

    def __init__(self, partition: Partition, log: Log | None, since_epoch: int, surroundings: Surroundings) -> None:
        self.log = log
        """None while its log dir is offline."""
        self.since_epoch = since_epoch
        """The leader epoch from which on this broker has led without a break."""
        self.isr: tuple[int, ...] = ()
        """What the controller agreed on."""
        self.maximal_isr: tuple[int, ...] = ()
        self.followers = _NOBODY
        """By broker id."""
        self._partition = partition
        self._surroundings = surroundings
        self._pending: object | None = None
        """Stands for the proposal whose outcome is awaited."""

    def take(self, state: PartitionImage, *, new_epoch: bool) -> None:
        """Follows a state of the partition in which this broker leads."""
        me = self._surroundings.broker_id
        new_leader = not self.isr
        self.isr = self.maximal_isr = state.isr
        self._pending = None
        known = self.followers
        others = [broker for broker in state.replicas if broker != me]
        self.followers = {broker: known.get(broker) or Follower(broker) for broker in others} if others else _NOBODY
        log = self.log
        if new_epoch and log is not None:
            end = log.log_end_offset
            # Though no record may ever have this epoch, a follower that asks for it must learn that it began here.
            log.epochs.assign(state.leader_epoch, end)
            self._partition.epoch_start_offset = end
            now = self._surroundings.now_ms()
            for follower in self.followers.values():
                in_sync = follower.broker_id in self.isr
                follower.reset(new_leader=new_leader, in_sync=in_sync, leader_end_offset=end, now_ms=now)
        self.advance()

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, but never more than there are replicas."""
        if not self.followers or self.log is None:
            return 1
        return min(self.log.config.min_insync_replicas, len(self.followers) + 1)

    @property
    def under_min_isr(self) -> bool:
        """Whether the ISR is smaller than that: acks=all is refused, and nothing is committed."""
        return bool(self.followers) and len(self.isr) < self.effective_min_isr

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of all live replicas."""
        lowest = 0 if self.log is None else self.log.log_start_offset
        brokers = self._surroundings.brokers
        for follower in self.followers.values():
            broker = brokers.get(follower.broker_id)
            if follower.log_start_offset < lowest and broker is not None and not broker.fenced:
                lowest = follower.log_start_offset
        return lowest

    def advance(self) -> bool:
        """Moves the high watermark as far as the followers allow. Returns whether it moved."""
        log = self.log
        if log is None:
            return False
        end = log.log_end_offset if log.commits is None else log.settled_end_offset
        if self.followers:
            if self.under_min_isr:
                return False
            leader_end = log.log_end_offset
            for follower in self.followers.values():
                if follower.log_end_offset < end and (
                    follower.broker_id in self.maximal_isr or self._about_to_join(follower, leader_end)
                ):
                    end = follower.log_end_offset
        return log.advance_high_watermark(end)

    def _about_to_join(self, follower: Follower, leader_end: int) -> bool:
        """Whether it is caught up though not in the ISR: running away from it would keep it out for ever."""
        surroundings = self._surroundings
        return follower.is_caught_up(leader_end, surroundings.now_ms(), surroundings.max_lag_ms) and may_join(
            surroundings.brokers.get(follower.broker_id), follower.broker_epoch
        )

    def fetched(
        self,
        follower: Follower,
        fetch_offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        now_ms: int,
        broker_epoch: int,
    ) -> bool:
        """Notes a follower's fetch; the high watermark and the ISR follow. Returns whether a watermark may have moved.

        `leader_end_offset` is this leader's as of the fetch. Raises NOT_LEADER_OR_FOLLOWER for a broker epoch that is
        over.
        """
        broker = self._surroundings.brokers.get(follower.broker_id)
        if broker_epoch != ANY_EPOCH and broker is not None and broker.epoch > broker_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"A fetch of broker {follower.broker_id} has epoch {broker_epoch}, which ended with {broker.epoch}",
            )
        deleted = follower.log_start_offset != log_start_offset
        follower.fetched(fetch_offset, log_start_offset, leader_end_offset, now_ms, broker_epoch)
        if (
            self._pending is None
            and follower.broker_id not in self.isr
            and self.log is not None
            and fetch_offset >= self.log.high_watermark
            # Committed records may lie between the high watermark and the beginning of this epoch (KAFKA-7128).
            and fetch_offset >= (self._partition.epoch_start_offset or 0)
            and may_join(broker, broker_epoch)
        ):
            self._propose((*self.isr, follower.broker_id))
        return self.advance() or deleted

    def shrink_isr(self) -> None:
        """Proposes an ISR without the followers that have not been caught up for `replica.lag.time.max.ms`."""
        log = self.log
        if log is None or self._pending is not None or len(self.isr) < 2:
            return
        now, max_lag = self._surroundings.now_ms(), self._surroundings.max_lag_ms
        end = log.log_end_offset
        lagging = {
            follower.broker_id
            for follower in self.followers.values()
            if follower.broker_id in self.isr and not follower.is_caught_up(end, now, max_lag)
        }
        if lagging:
            self._propose(tuple(broker for broker in self.isr if broker not in lagging))

    def _propose(self, isr: tuple[int, ...]) -> None:
        epochs = {}
        for broker in isr:
            follower = self.followers.get(broker)
            epochs[broker] = ANY_EPOCH if follower is None or follower.broker_epoch is None else follower.broker_epoch
        partition = self._partition
        pending = self._pending = object()  # not the proposal, which has the functions: they would be a cycle

        def committed(state: PartitionImage) -> None:
            if self._pending is pending and state.partition_epoch >= partition.partition_epoch:
                partition.partition_epoch = state.partition_epoch
                self._agreed(state.isr)

        def refused(code: ErrorCode) -> None:
            # This refusal tells that the proposal was made on top of the newest state and did not come true. After any
            # other the state is in doubt, and the proposal stays until the metadata say more.
            if self._pending is pending and code is ErrorCode.INELIGIBLE_REPLICA:
                self._agreed(self.isr)

        proposal = IsrProposal(
            partition.topic_id,
            partition.index,
            partition.leader_epoch,
            partition.partition_epoch,
            epochs,
            committed,
            refused,
        )
        self.maximal_isr = max(self.isr, isr, key=len)
        self._surroundings.propose_isr(proposal)

    def _agreed(self, isr: tuple[int, ...]) -> None:
        self._pending = None
        self.isr = self.maximal_isr = isr
        if self.advance():
            self._partition.changed()
