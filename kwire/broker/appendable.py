"""Whether a batch can be appended at once, and succeed: for who knows a Produce request from an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.cluster.partition import ALL
from kwire.metadata.names import INTERNAL_TOPICS
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.header import CODEC_MASK, TRANSACTIONAL_FLAG
from kwire.security.authorizer import Operation, ResourceType
from kwire.storage.record_walk import PendingWalk
from kwire.storage.validation import check, first_batch

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.session import Session
    from kwire.cluster.partition import Partition
    from kwire.storage.log import Log
    from kwire.storage.validated import ValidatedBatch


def writable(broker: Broker, session: Session, topic: str | bytes, transactional_id: str | None) -> str | None:
    """The name of a topic, which was asked for by that or by its id, that the client may write to, in transactions of
    this id if there is one; else None."""
    name = topic if isinstance(topic, str) else broker.store.image.topic_names.get(topic)
    if name is None or name in INTERNAL_TOPICS or not session.allows(Operation.WRITE, ResourceType.TOPIC, name):
        return None
    if transactional_id is not None and not session.allows(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        return None
    return name


def appendable(
    broker: Broker,
    topic: str,
    topic_id: bytes | None,
    index: int,
    records: memoryview,
    acks: int,
    version: int,
    transactional: bool,
    now_ms: int,
    *,
    unpacks: bool = True,
) -> tuple[Partition, Log, ValidatedBatch] | None:
    """What the partition's `append_at_once` takes, such as it is at this moment.

    None where that has to wait for somebody, or is refused; a transaction's first batch waits for its coordinator.
    `topic_id`: if the topic was asked for by that; one of the same name may have been made since. `records`, `version`:
    of the request. `transactional`: whether that may have batches of a transaction. `now_ms`: the wall
    clock's time. Records are looked at, if need be, where they are few; compressed ones if it `unpacks` them, which may
    take milliseconds.
    """
    partition = broker.replicas.partitions.get((topic, index))
    if partition is None or (topic_id is not None and partition.topic_id != topic_id):
        return None
    try:
        header, batch = first_batch(records, version)
        log = partition.check_appendable(acks)
        if header.attributes & TRANSACTIONAL_FLAG and not (transactional and log.writes_transaction(header)):
            return None
        if log.append_waits or (acks == ALL and not partition.commits_at_once):
            return None
        checked = check(header, batch, log.config, now_ms, name=log.name)
        if isinstance(checked, PendingWalk):
            if checked.large or (header.attributes & CODEC_MASK and not unpacks):
                return None
            checked = checked.run()
    except KafkaError:
        return None
    return partition, log, checked
