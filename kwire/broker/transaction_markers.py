"""Writes the markers of a decided transaction to all its partitions, wherever their leaders are, until all have them.

answer                                          what follows
NONE                                            done
the partition is not in the metadata            done: it was deleted, and what it had with it
INVALID_PRODUCER_EPOCH,
TRANSACTION_COORDINATOR_FENCED                  nothing more: another coordinator or producer has gone on
any other, or no answer                         again, after a pause
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

import trio

from kwire.broker.marker_appends import EndMarker, Results, append_markers
from kwire.client.errors import ClientError
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kwire.protocol.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from kwire.broker.broker import Broker
    from kwire.broker.peers import Peers

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0
"""Seconds between tries; the pause doubles."""

_DONE = (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION)
_OVER = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)

logger = logging.getLogger(__name__)


class TransactionMarkers:
    """Markers for the partitions of one cluster."""

    def __init__(self, broker: Broker, peers: Peers) -> None:
        self._broker = broker
        self._peers = peers

    async def write(
        self,
        transactional_id: str,
        marker: EndMarker,
        partitions: Collection[TopicPartition],
        wanted: Callable[[], bool],
    ) -> bool:
        """Returns when all partitions have it (True), or it is over for this coordinator (False).

        `wanted` tells before each new try whether this broker still coordinates the transaction.
        """
        left = set(partitions)
        pause = FIRST_PAUSE
        while wanted():
            results = await self._write_once(marker, left)
            if any(code in _OVER for code in results.values()):
                logger.warning("markers refused transactional_id=%r results=%r", transactional_id, _told(results))
                return False
            left = {partition for partition, code in results.items() if code not in _DONE}
            if not left:
                return True
            if pause == LONGEST_PAUSE:  # before that, leaders may just be moving or loading
                told = _told({partition: results[partition] for partition in left})
                self._broker.limited_log.warning(
                    logger, "markers delayed", "transactional_id=%r missing=%r", transactional_id, told
                )
            await trio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return False

    async def _write_once(self, marker: EndMarker, partitions: Collection[TopicPartition]) -> Results:
        results: Results = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        image = self._broker.store.image
        for topic, index in partitions:
            state = image.partition(topic, index)
            if state is not None:
                by_leader.setdefault(state.leader, []).append((topic, index))
        here = by_leader.pop(self._broker.id, [])
        if not by_leader:
            return await append_markers(self._broker, marker, here)
        async with trio.open_nursery() as nursery:
            for leader, led in by_leader.items():
                nursery.start_soon(self._send, leader, marker, led, results)
            results |= await append_markers(self._broker, marker, here)
        return results

    async def _send(self, leader: int, marker: EndMarker, partitions: list[TopicPartition], results: Results) -> None:
        """Asks the leader of the partitions; what was not answered is LEADER_NOT_AVAILABLE."""
        results |= dict.fromkeys(partitions, ErrorCode.LEADER_NOT_AVAILABLE)
        topics: dict[str, WritableTxnMarkerTopic] = {}
        for name, index in partitions:
            topics.setdefault(name, WritableTxnMarkerTopic(name=name)).partition_indexes.append(index)
        request = WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=marker.producer.id,
                    producer_epoch=marker.producer.epoch,
                    transaction_result=marker.commit,
                    topics=list(topics.values()),
                    coordinator_epoch=marker.coordinator_epoch,
                    transaction_version=marker.transaction_version,
                )
            ]
        )
        try:
            response: WriteTxnMarkersResponse = await self._peers.call(leader, request)
        except ClientError as error:
            logger.info("markers not sent broker=%d error=%s", leader, error)
            return
        for answered in response.markers:
            for topic in answered.topics:
                for partition in topic.partitions:
                    results[topic.name, partition.partition_index] = ErrorCode(partition.error_code)


def _told(results: Results) -> str:
    """For a line in the log."""
    return ", ".join(f"{topic}-{number}: {code.name}" for (topic, number), code in sorted(results.items()))
