"""What coordinators leave in their topics, record by record."""

from __future__ import annotations

from collections.abc import Callable

from compat_tests.oracle.asking import ALL, fetch
from compat_tests.oracle.normal import tree
from compat_tests.oracle.sides import Side
from kwire.protocol.coordinator_records.record_types import RecordTypes
from kwire.protocol.coordinator_records.serde import decode_record
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import iter_records
from kwire.protocol.schema import Message
from kwire.protocol.version_prefixed import read_prefix

LATEST = -1


def end(side: Side, topic: str) -> int:
    """The log end offset of the topic's one partition."""
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=LATEST)]
    request = ListOffsetsRequest(replica_id=ALL, topics=[ListOffsetsTopic(name=topic, partitions=partitions)])
    offset: int = side.call(request).topics[0].partitions[0].offset
    return offset


def record_what_is_written(
    side: Side, topic: str, types: RecordTypes, since: int, about: Callable[[Message], str], *names: str
) -> None:
    """The records about these, from an offset on; there must be some of each. `about`: whom a key is about."""
    missing = set(names)
    side.settle_topic(topic, 1)
    upto = end(side, topic)
    while since < upto:
        (partition,) = side.call(fetch(side, topic, since)).responses[0].partitions
        for header, batch in iter_batches(bytes(partition.records)):
            for record in iter_records(bytes(batch)):
                since = header.next_offset
                if record.key is None:
                    continue
                key, value = decode_record(types, record.key, record.value)
                name = about(key)
                if name in names:
                    missing.discard(name)
                    version = None if record.value is None else read_prefix(record.value)
                    told = {"key": tree(key, side.names), "version": version}
                    told["value"] = None if value is None else tree(value, side.names)
                    side.record(type(key).__name__, told)
    assert not missing
