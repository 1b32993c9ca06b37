"""Followers fetch: one task for each leader, with ordinary Fetch requests that carry this broker's replica id.

A round: every partition whose time has come is in one request (in a fetch session, so that only changes travel); what
comes back is appended, or makes the partition go back to where its history and the leader's part, or makes it wait:

    answer                                     what follows
    records                                    append; the next fetch begins behind them
    diverging epoch                            truncate (KIP-595)
    OFFSET_OUT_OF_RANGE                        ask the leader where its log begins and ends, and begin within it
    FENCED_LEADER_EPOCH                        stop: the metadata with the new epoch are on their way
    UNKNOWN_LEADER_EPOCH, NOT_LEADER…,
    UNKNOWN_TOPIC…, any other                  try again after replica.fetch.backoff.ms
    records, where there is no room now        try again after replica.fetch.backoff.ms
    what this broker cannot append or write    stop until the next leader epoch; the others go on
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from kwire.client.connection import Connection
from kwire.client.errors import BrokerUnreachable, ClientError
from kwire.cluster import following
from kwire.cluster.fetch_session import FetchSession, PartitionKey, Position
from kwire.cluster.replica import EARLIEST, LATEST
from kwire.metadata.image import Endpoint
from kwire.ports.transport import Transport
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.records.errors import CorruptBatchError
from kwire.storage.leader_epochs import EpochEnd

if TYPE_CHECKING:
    from kwire.cluster.partition import Partition

logger = logging.getLogger(__name__)

_FIRST_VERSION_WITH_REPLICA_STATE = 15
_SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How followers fetch: the configs `replica.fetch.…` and `replica.socket.timeout.ms`, and who this broker is."""

    broker_id: int
    broker_epoch: Callable[[], int]
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_partition_bytes: int
    backoff_ms: int
    timeout_ms: int


class _Followed:
    """A partition that is fetched, in the leader epoch for which that was ordered."""

    __slots__ = ("leader_epoch", "not_before", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.not_before = 0.0
        """On Trio's clock."""


class LeaderFetcher:
    """Fetches from one leader. `run` is its task."""

    def __init__(
        self, leader: int, transport: Transport, endpoint: Callable[[int], Endpoint | None], settings: FetchSettings
    ) -> None:
        """`endpoint(broker id)` is where that broker is reached now; None where it is not known."""
        self.leader = leader
        self._transport = transport
        self._endpoint = endpoint
        self._settings = settings
        self._session = FetchSession(settings.max_partition_bytes)
        self._followed: dict[PartitionKey, _Followed] = {}
        self._delayed: dict[PartitionKey, _Followed] = {}
        """Those of them that wait for `not_before`."""
        self._dirty: set[PartitionKey] = set()
        """What the leader must be told anew: the position changed, or the partition came or went."""
        self._connection: Connection | None = None
        self._changed = trio.Event()

    @property
    def idle(self) -> bool:
        return not self._followed

    def follow(self, partition: Partition) -> None:
        """Fetches this partition from now on, in its present leader epoch."""
        key = partition.topic_id, partition.index
        self._followed[key] = _Followed(partition)
        self._delayed.pop(key, None)
        self._dirty.add(key)
        self._changed.set()

    def leave(self, partition: Partition) -> None:
        """Fetches it no more; an answer that is under way is not taken."""
        self._forget((partition.topic_id, partition.index))

    def _forget(self, key: PartitionKey) -> None:
        self._followed.pop(key, None)
        self._delayed.pop(key, None)
        self._dirty.add(key)

    async def run(self) -> None:
        """Fetches until cancelled."""
        try:
            while True:
                self._end_delays()
                if len(self._delayed) == len(self._followed):
                    await self._until_changed()
                    continue
                try:
                    await self._round(await self._connected())
                    continue
                except (ClientError, KafkaError) as error:
                    logger.info("fetching from broker %d failed, trying again: %s", self.leader, error)
                except Exception:
                    # Whatever one leader sent must not end this broker's other work.
                    logger.exception("fetching from broker %d failed unexpectedly, trying again", self.leader)
                self._disconnect()
                await trio.sleep(self._settings.backoff_ms / 1000)
        finally:
            self._disconnect()

    def _end_delays(self) -> None:
        if self._delayed:
            now = trio.current_time()
            over = [key for key, followed in self._delayed.items() if followed.not_before <= now]
            for key in over:
                del self._delayed[key]
            self._dirty.update(over)

    async def _until_changed(self) -> None:
        """Until a partition is ordered or a delay is over."""
        self._changed = trio.Event()
        first = min((followed.not_before for followed in self._delayed.values()), default=float("inf"))
        with trio.move_on_at(first):
            await self._changed.wait()

    def _fill(self, request: FetchRequest) -> None:
        keys = list(self._followed) if self._session.begins else list(self._dirty)
        self._dirty.clear()
        positions: dict[PartitionKey, Position] = {}
        gone = []
        for key in keys:
            followed = self._followed.get(key)
            if followed is None or key in self._delayed:
                gone.append(key)
                continue
            try:
                positions[key] = following.position(followed.partition)
            except KafkaError:  # its log dir is offline
                del self._followed[key]
                gone.append(key)
        self._session.fill(request, positions, gone)

    async def _connected(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        self._session.reset()
        endpoint = self._endpoint(self.leader)
        if endpoint is None:
            raise BrokerUnreachable(f"broker {self.leader} has no address between brokers")
        self._connection = await Connection.open(
            self._transport,
            endpoint.host,
            endpoint.port,
            client_id=f"broker-{self._settings.broker_id}-fetcher",
            request_timeout=self._settings.timeout_ms / 1000,
        )
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _round(self, connection: Connection) -> None:
        settings = self._settings
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=settings.broker_id, replica_epoch=settings.broker_epoch()),
            max_wait_ms=settings.max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
        )
        self._fill(request)
        version = connection.version(FetchRequest)
        if version < _FIRST_VERSION_WITH_REPLICA_STATE:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"broker {self.leader} has Fetch up to {version} only")
        timeout = (settings.timeout_ms + settings.max_wait_ms) / 1000
        response: FetchResponse = await connection.call(request, version, timeout=timeout)
        if response.error_code in _SESSION_ERRORS:
            self._session.reset()
            return
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code))
        self._session.answered(response.session_id)
        for topic in response.responses:
            for data in topic.partitions:
                await self._take(connection, (topic.topic_id, data.partition_index), data)

    async def _take(self, connection: Connection, key: PartitionKey, data: PartitionData) -> None:
        """Takes over what the leader says of one partition, unless it was asked for in another state than it is in."""
        followed, asked = self._followed.get(key), self._session.asked.get(key)
        if followed is None or asked is None or followed.leader_epoch != asked.current_leader_epoch:
            return
        partition = followed.partition
        self._dirty.add(key)
        try:
            if data.error_code:
                await self._answer_error(connection, key, followed, data.error_code)
            elif data.diverging_epoch.epoch != -1 or data.diverging_epoch.end_offset != -1:
                diverging = EpochEnd(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
                offset = following.truncate(partition, followed.leader_epoch, diverging)
                logger.info("%s truncated to %d, where leader %d goes another way", partition.name, offset, self.leader)
            else:
                await following.append(
                    partition, followed.leader_epoch, data.records, data.high_watermark, data.log_start_offset
                )
        except CorruptBatchError as error:
            # It may have been damaged on the way, or be just being replaced at the leader.
            logger.error("%s: the leader sent a corrupt batch: %s", partition.name, error)
            self._delay(key, followed)
        except ClientError:
            raise
        except KafkaError as error:
            log = partition.log
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR and log is not None and log.log_dir.online:
                self._delay(key, followed)  # there is no room now (`storage/room.py`)
            else:
                logger.warning("%s is not fetched until the next leader epoch: %s", partition.name, error)
                self._stop(key, followed)
        except Exception:
            # What is wrong with one partition must not keep the others of this leader from being fetched.
            logger.exception("%s is not fetched until the next leader epoch", partition.name)
            self._stop(key, followed)

    async def _answer_error(self, connection: Connection, key: PartitionKey, followed: _Followed, code: int) -> None:
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            self._stop(key, followed)
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._resume_in_range(connection, key, followed)
        else:
            logger.debug("%s: leader %d answered error %d", followed.partition.name, self.leader, code)
            self._delay(key, followed)

    async def _resume_in_range(self, connection: Connection, key: PartitionKey, followed: _Followed) -> None:
        """The leader's log ends before this one's end (an unclean election), or begins behind it (a long absence)."""
        partition, epoch = followed.partition, followed.leader_epoch
        end = following.position(partition).fetch_offset
        try:
            leader_end = await self._list_offset(connection, followed, LATEST)
            leader_start = None if leader_end < end else await self._list_offset(connection, followed, EARLIEST)
        except KafkaError as error:
            logger.info("%s: leader %d does not tell its offsets: %s", partition.name, self.leader, error)
            self._delay(key, followed)
            return
        if leader_start is None:
            logger.warning("%s truncated from %d to the leader's end %d", partition.name, end, leader_end)
            following.truncate_to(partition, epoch, leader_end)
        elif leader_start > end:
            logger.warning("%s begins anew at the leader's start %d, it ended at %d", partition.name, leader_start, end)
            following.start_at(partition, epoch, leader_start)
        else:
            self._delay(key, followed)  # in range again by now: the leader has gone on, or the answer was old

    async def _list_offset(self, connection: Connection, followed: _Followed, timestamp: int) -> int:
        partition = followed.partition
        asked = ListOffsetsPartition(
            partition_index=partition.index, current_leader_epoch=followed.leader_epoch, timestamp=timestamp
        )
        response = await connection.call(
            ListOffsetsRequest(
                replica_id=self._settings.broker_id,
                topics=[ListOffsetsTopic(name=partition.topic, partitions=[asked])],
            )
        )
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        offset: int = answer.offset
        return offset

    def _delay(self, key: PartitionKey, followed: _Followed) -> None:
        if self._followed.get(key) is followed:
            followed.not_before = trio.current_time() + self._settings.backoff_ms / 1000
            self._delayed[key] = followed

    def _stop(self, key: PartitionKey, followed: _Followed) -> None:
        """Unless it was ordered anew, in another epoch, meanwhile."""
        if self._followed.get(key) is followed:
            self._forget(key)
