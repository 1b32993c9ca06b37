"""What the coordinators keep in the internal topics: one module a type of record, its key and its value.

    key = encode_key(OffsetCommitKey(group="g", topic="t", partition=0))
    value = encode_value(OffsetCommitValue(offset=7, commit_timestamp=now), 3)
    key, value = decode_record(GROUP_RECORD_TYPES, record.key, record.value)

A key begins with its record type and a value with its version, each an int16; a record without a value is a tombstone.
"""
