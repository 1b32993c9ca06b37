"""One partition on this broker: its role, appends as its leader, and who waits for it.

Everything happens on the event loop; what awaits is an append and a change of role, and a change of role waits for the
appends under way.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from kwire.cluster.follower import Follower
from kwire.cluster.isr import ANY_EPOCH
from kwire.cluster.leadership import Leadership, Surroundings
from kwire.cluster.replica import NO_EPOCH, Bound, PartitionRead, Replica
from kwire.metadata.image import PartitionImage
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.validated import Origin

if TYPE_CHECKING:
    from kwire.cluster.waiting import Waiter
    from kwire.config.topic import LogConfig
    from kwire.ports.files import Buffer
    from kwire.storage.log import AppendInfo, Log
    from kwire.storage.validated import ValidatedBatch
    from kwire.storage.verification import VerificationGuard

ALL: Final = -1
"""`acks` that wait for all in-sync replicas."""


_NOBODY: Final[dict[Waiter, None]] = {}
"""Who waits for an idle partition. Never filled."""


class Appended(NamedTuple):
    """An append by the leader: what the log says, and what an acks=all producer has to wait for."""

    info: AppendInfo
    required_offset: int
    """The append is on all in-sync replicas when the high watermark has come here."""
    leader_epoch: int


class Partition(Replica):
    """A partition of which this broker is a replica."""

    __slots__ = (
        "_free",
        "_holders",
        "_surroundings",
        "_waiters",
        "_writable",
        "leadership",
        "partition_epoch",
        "replicas",
    )

    def __init__(self, topic: str, index: int, topic_id: bytes, surroundings: Surroundings) -> None:
        super().__init__(topic, index, topic_id)
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.leadership: Leadership | None = None
        """Present while this broker is the leader."""
        self._writable: Leadership | None = None
        """The same while appends may begin."""
        self._surroundings = surroundings
        self._holders = 0
        self._free: trio.Event | None = None
        self._waiters = _NOBODY

    def take_log(self, log: Log) -> None:
        """This is the partition's log from now on."""
        self.log = log
        log.listener = self

    def watch(self, waiter: Waiter) -> None:
        """Calls `waiter.wake` at every change from now on."""
        if self._waiters is _NOBODY:
            self._waiters = {}
        self._waiters[waiter] = None

    def unwatch(self, waiter: Waiter) -> None:
        """Does nothing where the waiter does not watch."""
        self._waiters.pop(waiter, None)
        if not self._waiters:
            self._waiters = _NOBODY

    def changed(self) -> None:
        """Wakes everybody who watches."""
        for waiter in tuple(self._waiters):
            waiter.wake(self)

    async def take_role(self, state: PartitionImage) -> bool:
        """Becomes what `state` says, unless it is older than what is known. Returns whether the leader epoch is new."""
        if state.partition_epoch < self.partition_epoch or state.leader_epoch < self.leader_epoch:
            return False
        new_epoch = state.leader_epoch > self.leader_epoch
        leads = state.leader == self._surroundings.broker_id
        if new_epoch or not leads:
            self._writable = None
            await self._role_is_free()
        self.partition_epoch = state.partition_epoch
        self.leader_epoch = state.leader_epoch
        self.replicas = state.replicas
        self.leader = state.leader
        self.is_leader = leads
        if leads:
            if self.leadership is None:
                self.leadership = Leadership(self, self.log, state.leader_epoch, self._surroundings)
            self.leadership.take(state, new_epoch=new_epoch)
        else:
            self.leadership = None
            self.epoch_start_offset = None
        self._writable = self.leadership
        self.changed()
        return new_epoch

    async def retire(self, *, deleted: bool) -> None:
        """This broker is no replica any more, since the topic is deleted or the replica moved: who waits gets
        UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER. On return the log is idle."""
        self.deleted = deleted
        self.is_leader = False
        self.leadership = self._writable = None
        self.changed()
        await self._role_is_free()
        if self.log is not None:
            self.log.listener = None  # no cycle keeps what was deleted

    def lose_log(self) -> None:
        """The log dir is offline: from now on everything answers KAFKA_STORAGE_ERROR."""
        self.log = None
        if self.leadership is not None:
            self.leadership.log = None
        self.changed()

    def configure(self, config: LogConfig) -> None:
        """Another configuration of the topic: a smaller `min.insync.replicas` may let the high watermark go on.

        Where remote storage was switched off the log of a leader begins with what is here (KIP-950).
        """
        log = self.log
        if log is not None:
            was_tiered = log.tiered
            log.configure(config)
            if was_tiered and not log.tiered and self.is_leader:
                with suppress(KafkaError):  # of a log dir that went offline
                    log.advance_log_start(min(log.local_start_offset, log.high_watermark))
            if self.leadership is not None and self.leadership.advance():
                self.changed()

    def hold_role(self) -> None:
        """Keeps the role as it is until `release_role`: the log is being changed in that role."""
        self._holders += 1

    def release_role(self) -> None:
        self._holders -= 1
        if self._free is not None and not self._holders:
            self._free.set()
            self._free = None

    async def _role_is_free(self) -> None:
        while self._holders:
            self._free = self._free or trio.Event()
            await self._free.wait()

    def check_appendable(self, acks: int) -> Log:
        """The log, if a produce request with these acks may append to it now.

        Raises NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, and NOT_ENOUGH_REPLICAS where acks=all could not be kept.
        """
        leadership = self._writable
        if leadership is None or leadership.log is None:
            raise self._offline() if self.log is None else self._not_leader()
        if acks == ALL and leadership.followers and leadership.under_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {sorted(leadership.isr)} is insufficient to satisfy the min.isr "
                f"requirement of {leadership.effective_min_isr} for partition {self.name}",
            )
        return leadership.log

    def begin_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """The guard with which the leader takes a transactional batch; None where it needs none (KIP-890).

        Raises what `local_log` raises, INVALID_PRODUCER_EPOCH.
        """
        return self.local_log().begin_verification(
            producer_id, sequence, epoch, supports_epoch_bump=supports_epoch_bump
        )

    async def append(
        self,
        records: ValidatedBatch | Buffer,
        acks: int,
        *,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
        verification: VerificationGuard | None = None,
        log: Log | None = None,
    ) -> Appended:
        """Appends as the leader; a blob of bytes is validated first. Raises what `check_appendable` and the log raise.

        With acks=all the caller then waits (`kwire.cluster.waiting.ReplicationWait`). `transaction_version` is that
        under which a marker is written, `verification` what `begin_verification` gave (KIP-890), `log` what
        `check_appendable` has just returned to a caller that has awaited nothing since.
        """
        if log is None:
            log = self.check_appendable(acks)
        epoch = self.leader_epoch
        self._holders += 1
        try:
            info = await log.append_as_leader(
                records, epoch, origin=origin, transaction_version=transaction_version, verification=verification
            )
        finally:
            # A caller that is cancelled while the log is flushed leaves an append that is there for all others.
            if self._free is None:
                self._holders -= 1
            else:
                self.release_role()
            if self.leadership is not None:
                self.leadership.advance()
            if self._waiters:
                self.changed()
        return tuple.__new__(Appended, (info, info.last_offset + 1, epoch))

    @property
    def commits_at_once(self) -> bool:
        """Whether what is appended is acknowledged with acks=all as soon as it is written: nobody else has to have it.

        For the leader of a log.
        """
        leadership, log = self.leadership, self.log
        if leadership is None or log is None or leadership.followers:
            return False
        return log.commits is None or log.settled_end_offset == log.log_end_offset

    def append_at_once(self, batch: ValidatedBatch, log: Log) -> AppendInfo:
        """As `append` a client's batch, to what `check_appendable` gave, where not `append_waits`.

        It is of no transaction, or of one that has records here.
        """
        info = log.append_at_once(batch, self.leader_epoch)
        if self.leadership is not None:
            self.leadership.advance()
        if self._waiters:
            self.changed()
        return info

    def acknowledged(self, appended: Appended) -> ErrorCode | None:
        """What an acks=all producer is to be told of its append; None as long as it has to wait."""
        leadership = self.leadership
        if leadership is None or appended.leader_epoch < leadership.since_epoch:
            return self._not_leader().code
        if leadership.log is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if leadership.log.high_watermark < appended.required_offset:
            return None
        if leadership.followers and len(leadership.maximal_isr) < leadership.effective_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    async def delete_records(self, offset: int) -> tuple[int, int]:
        """Moves the log's start to `offset` (-1: to the high watermark). Returns (that offset, low watermark).

        The deletion is done when the low watermark has come to the offset, which may need the followers. Raises what
        `local_log` raises, POLICY_VIOLATION where the topic is compacted only, OFFSET_OUT_OF_RANGE.
        """
        log = self.local_log()
        if log.config.compacted and not log.config.deleted:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"Records of partition {self.name} can not be deleted due to the configured policy",
            )
        target = log.high_watermark if offset == -1 else offset
        if not 0 <= target <= log.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"The offset {target} for partition {self.name} is not in [0, {log.high_watermark}]",
            )
        log.advance_log_start(target)
        return target, self.low_watermark()

    def low_watermark(self) -> int:
        """The smallest log start offset of all live replicas. Raises what `local_log` raises."""
        self.local_log()
        if self.leadership is None:
            raise self._not_leader()
        return self.leadership.low_watermark

    async def fetch_for_follower(
        self,
        broker_id: int,
        offset: int,
        max_bytes: int,
        *,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        log_start_offset: int = -1,
        broker_epoch: int = ANY_EPOCH,
        min_one: bool = False,
        record: bool = True,
    ) -> PartitionRead:
        """A follower's fetch: reads up to the log's end and, with `record`, notes how far the follower is.

        `record` is for the first look at a request: when it is looked at again after a wait, it tells nothing new.
        Raises what `fetch` raises; UNKNOWN_LEADER_EPOCH (NOT_LEADER_OR_FOLLOWER where the request has no epoch) to a
        broker that is no replica; NOT_LEADER_OR_FOLLOWER for a broker epoch that is over.
        """
        self._follower(broker_id, current_leader_epoch)
        read = await self.fetch(
            offset,
            max_bytes,
            Bound.LOG_END,
            current_leader_epoch=current_leader_epoch,
            last_fetched_epoch=last_fetched_epoch,
            min_one=min_one,
        )
        if read.tiered:
            return read
        # Cold data took a while, in which the role may have changed and the follower's assignment too.
        leadership, follower = self._follower(broker_id, current_leader_epoch)
        if not record or read.diverging is not None:
            return read
        now = self._surroundings.now_ms()
        if leadership.fetched(follower, offset, log_start_offset, read.log_end_offset, now, broker_epoch):
            self.changed()
            if leadership.log is not None:
                return read._replace(high_watermark=leadership.log.high_watermark)
        return read

    def _follower(self, broker_id: int, current_leader_epoch: int) -> tuple[Leadership, Follower]:
        self.local_log(current_leader_epoch)
        leadership = self.leadership
        if leadership is None:
            raise self._not_leader()
        follower = leadership.followers.get(broker_id)
        if follower is None:
            # It may know of its assignment before this broker does, so it is to try again.
            with_epoch = current_leader_epoch != NO_EPOCH
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH if with_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Broker {broker_id} is not known as a replica of {self.name}",
            )
        return leadership, follower
