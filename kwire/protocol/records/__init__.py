"""Record batches (message format v2): header, records, building, compression, checksum.

A batch is 61 bytes of header and then the records, compressed as one block where the header names a codec::

    base_offset int64 | batch_length int32 | leader_epoch int32 | magic int8 | crc uint32 | attributes int16 |
    last_offset_delta int32 | base_timestamp int64 | max_timestamp int64 | producer_id int64 | producer_epoch int16 |
    base_sequence int32 | count int32 | records

The CRC-32C covers everything from the attributes on, so that a leader can assign the offset and its epoch without
computing it anew.
"""

from kwire.protocol.records.errors import CorruptBatchError, InvalidBatch, RecordError

__all__ = ["CorruptBatchError", "InvalidBatch", "RecordError"]
