"""Whether a batch can be appended at once, and succeed: for who knows a Produce request from an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.cluster.partition import ALL
from kwire.metadata.names import INTERNAL_TOPICS
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.header import TRANSACTIONAL_FLAG
from kwire.security.authorizer import Operation, ResourceType
from kwire.storage.record_walk import PendingWalk
from kwire.storage.validation import check, first_batch

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import Session
    from kwire.cluster.partition import Partition
    from kwire.storage.log import Log
    from kwire.storage.validated import ValidatedBatch


def writable(broker: Broker, session: Session, topic: str | bytes) -> str | None:
    """The name of a topic, which was asked for by that or by its id, that the client may write to; else None."""
    name = topic if isinstance(topic, str) else broker.store.image.topic_names.get(topic)
    if name is None or name in INTERNAL_TOPICS or not session.allows(Operation.WRITE, ResourceType.TOPIC, name):
        return None
    return name


def appendable(
    broker: Broker, topic: str, index: int, records: memoryview, acks: int, version: int
) -> tuple[Partition, Log, ValidatedBatch] | None:
    """What the partition's `append_at_once` takes, such as it is at this moment.

    None where that has to wait for somebody, or is refused. `records`, `version`: of the request.
    """
    partition = broker.replicas.partitions.get((topic, index))
    if partition is None:
        return None
    try:
        header, batch = first_batch(records, version)
        if header.attributes & TRANSACTIONAL_FLAG:
            return None
        log = partition.check_appendable(acks)
        if log.append_waits or (acks == ALL and not partition.commits_at_once):
            return None
        checked = check(header, batch, log.config, broker.clock.wall_ms(), name=log.name)
        if isinstance(checked, PendingWalk):
            if checked.large:
                return None
            checked = checked.run()
    except KafkaError:
        return None
    return partition, log, checked
