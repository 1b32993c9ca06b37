"""The records of one batch: do they unpack, and do they fit what the batch's header says of them?"""

from __future__ import annotations

from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import BatchHeader
from kwire.protocol.records.record import record_data, scan

_LIMIT = 2**31 - 1
"""What a batch may unpack to: more than Apache Kafka can hold in one."""


def records_fault(header: BatchHeader, batch: memoryview) -> str | None:
    """What is wrong with the records of a whole batch."""
    if header.count == 0:
        return None
    newest, before, whole = -1, -1, header.count == header.last_offset_delta + 1
    try:
        for number, (timestamp_delta, offset_delta, *_) in enumerate(
            scan(record_data(batch, header, _LIMIT), header.count)
        ):
            if not before < offset_delta <= header.last_offset_delta or (whole and offset_delta != number):
                return f"record {number} has offset delta {offset_delta}"
            before = offset_delta
            newest = max(newest, header.base_timestamp + timestamp_delta)
    except CorruptBatchError as error:
        return error.message
    if not header.log_append_time and newest != header.max_timestamp:
        return f"the newest record is of {newest}, the header says {header.max_timestamp}"
    return None
