"""Looking at the records of a produced batch, one by one: keys, timestamps, offsets, another codec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import CorruptBatchError, InvalidBatch, RecordError
from kwire.protocol.records.compression import DEFAULT_LIMIT, Compression, compress, zstd_bound
from kwire.protocol.records.header import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PREFIX_SIZE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    read_header,
    seal,
)
from kwire.protocol.records.record import record_data, scan
from kwire.protocol.records.survey import survey
from kwire.protocol.records.varint import encode_varint
from kwire.storage.validated import (
    ValidatedBatch,
    as_it_is,
    check_size,
    with_append_time,
    with_max_timestamp,
)

if TYPE_CHECKING:
    from kwire.config.topic import LogConfig

MOST_TOLD = 10_000
"""So many bad records of a batch are named: a small batch may unpack to millions."""

_LARGE_WALK_RECORDS = 200
_LARGE_WALK_PLAIN = 64 * 1024
"""Its records may have tens of thousands of headers."""
_LARGE_TO_COMPRESS = 4096
_LARGE_WALK_COMPRESSED = 2048
_LARGE_WALK_ZSTD = 256 * 1024
"""Unpacked. The other codecs make no more than some MB of what is not large packed; zstd makes 60."""


class PendingWalk:
    """A batch that passed what its header and CRC can tell, and whose records must be looked at."""

    __slots__ = ("_batch", "_config", "_header", "_name", "_now_ms", "_target")

    def __init__(
        self, header: BatchHeader, batch: memoryview, config: LogConfig, target: Compression, now_ms: int, name: str
    ) -> None:
        self._header = header
        self._batch = batch
        self._config = config
        self._target = target
        self._now_ms = now_ms
        self._name = name

    @property
    def large(self) -> bool:
        """Whether `run` may take so long (about a tenth of a millisecond and more) that it belongs on a worker thread.

        Compressed data counts as large early: how much it holds is known of zstd alone before it is unpacked.
        """
        header = self._header
        if header.count > _LARGE_WALK_RECORDS or header.size > _LARGE_WALK_PLAIN:
            return True
        if header.size > _LARGE_TO_COMPRESS and self._target is not header.codec:
            return True
        if not header.attributes & CODEC_MASK:
            return False
        if header.size > _LARGE_WALK_COMPRESSED:
            return True
        if header.codec is not Compression.ZSTD:
            return False
        try:
            return zstd_bound(self._batch[HEADER_SIZE:]) > _LARGE_WALK_ZSTD
        except CorruptBatchError:  # `run` refuses it
            return False

    def run(self) -> ValidatedBatch:
        """Walks the records, and rebuilds the batch where the topic wants another codec. Pure; any thread may run it.

        InvalidBatch: INVALID_RECORD or INVALID_TIMESTAMP with the records refused, INVALID_RECORD if the records do
        not fit the batch, UNKNOWN_SERVER_ERROR if they cannot be decompressed, MESSAGE_TOO_LARGE or
        RECORD_LIST_TOO_LARGE if the batch became too large.
        """
        header, config = self._header, self._config
        codec = header.codec
        try:
            data = record_data(self._batch, header, max(DEFAULT_LIMIT, 4 * config.max_message_bytes))
            max_timestamp, in_sequence, canonical = self._walk(data)
        except CorruptBatchError as failure:
            raise InvalidBatch(failure.code, failure.message) from failure
        append_time = config.message_timestamp_type != "CreateTime"
        if self._target is not codec and not (codec is Compression.NONE and header.control):
            return self._recompressed(data, in_sequence and canonical, max_timestamp)
        if codec and not in_sequence:
            # Kafka would rebuild such a batch, fails at it, and answers so
            raise InvalidBatch(
                ErrorCode.UNKNOWN_SERVER_ERROR, "The offsets of the records in a compressed batch are not 0, 1, 2, …"
            )
        check_size(header.size, config)
        if append_time:
            return with_append_time(header, self._batch, self._now_ms)
        if max_timestamp == header.max_timestamp and not header.log_append_time:
            return as_it_is(header, self._batch)
        return with_max_timestamp(header, self._batch, max_timestamp)

    def _walk(self, data: bytes) -> tuple[int, bool, bool]:
        """(latest timestamp, whether the offsets are 0, 1, …, whether the first record has the base timestamp)."""
        header, config, now_ms = self._header, self._config, self._now_ms
        compacted = config.compacted
        create_time = config.message_timestamp_type == "CreateTime"
        marked = header.log_append_time
        earliest = now_ms - config.message_timestamp_before_max_ms
        latest = now_ms + config.message_timestamp_after_max_ms
        base_timestamp = header.base_timestamp
        max_timestamp = NO_TIMESTAMP
        in_sequence = True
        canonical = not marked and not header.has_delete_horizon
        if not marked and (found := survey(data, header.count)) is not None:
            within = not create_time or (
                earliest <= base_timestamp + found.least and base_timestamp + found.most <= latest
            )
            if within and not (compacted and found.keyless):
                return max(base_timestamp + found.most, NO_TIMESTAMP), True, canonical and not found.first
        errors = _Errors()
        bad_timestamp = False
        for expected, (timestamp_delta, offset_delta, _, key_length, _, value_length, _, _, _) in enumerate(
            scan(data, header.count)
        ):
            timestamp = header.max_timestamp if marked else base_timestamp + timestamp_delta
            if compacted and key_length < 0:
                if errors.more():
                    errors.told.append(
                        RecordError(
                            expected,
                            f"Compacted topic cannot accept message without key in topic partition {self._name}",
                        )
                    )
            elif create_time and timestamp != NO_TIMESTAMP:
                if not earliest <= timestamp <= latest:
                    bad_timestamp = True
                    if errors.more():
                        errors.told.append(
                            RecordError(
                                expected,
                                f"Timestamp {timestamp} of message with offset {header.base_offset + offset_delta} is "
                                f"out of range. The timestamp should be within [{earliest}, {latest}]",
                            )
                        )
            elif marked:
                bad_timestamp = True
                if errors.more():
                    errors.told.append(
                        RecordError(
                            expected,
                            "Invalid timestamp type in message "
                            f"DefaultRecord(offset={header.base_offset + offset_delta}, timestamp={timestamp}, "
                            f"key={max(key_length, 0)} bytes, value={max(value_length, 0)} bytes). "
                            "Producer should not set timestamp type to LogAppendTime.",
                        )
                    )
            if timestamp > max_timestamp:
                max_timestamp = timestamp
            if offset_delta != expected:
                in_sequence = False
            if not expected and timestamp_delta:
                canonical = False
        if errors.count:
            raise _refusal(errors, bad_timestamp)
        return max_timestamp, in_sequence, canonical

    def _recompressed(self, data: bytes, as_built: bool, max_timestamp: int) -> ValidatedBatch:
        header, config, target = self._header, self._config, self._target
        level = _level(config, target)
        append_time = None if config.message_timestamp_type == "CreateTime" else self._now_ms
        _check_producer(header)
        base_timestamp = header.base_timestamp
        if not as_built or base_timestamp < NO_TIMESTAMP:
            data, base_timestamp = _numbered(header, data)
            if base_timestamp < NO_TIMESTAMP:
                raise InvalidBatch(ErrorCode.UNKNOWN_SERVER_ERROR, f"Invalid message timestamp {base_timestamp}")
        records = compress(target, data, level) if data else data
        attributes = header.attributes & (TRANSACTIONAL_FLAG | CONTROL_FLAG) | target
        rebuilt = header._replace(
            base_offset=0,
            batch_length=HEADER_SIZE - LOG_OVERHEAD + len(records),
            attributes=attributes if append_time is None else attributes | LOG_APPEND_TIME_FLAG,
            last_offset_delta=header.count - 1,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp if append_time is None else append_time,
        )
        check_size(rebuilt.size, config)
        batch = seal(rebuilt, records) + records
        return ValidatedBatch(
            read_header(batch), (memoryview(batch)[PREFIX_SIZE:],), -1 if append_time is None else append_time
        )


def _numbered(header: BatchHeader, data: bytes) -> tuple[bytes, int]:
    """The records with the offsets 0, 1, 2, … and their timestamps counted from that of the first one, and that.

    All else of them stays as it is, and nothing is made of it: a small batch may unpack to millions of headers.
    """
    numbered, parts = bytearray(), memoryview(data)
    base_timestamp = NO_TIMESTAMP
    for offset, (timestamp_delta, _, key_at, key_length, _, _, _, _, end) in enumerate(scan(data, header.count)):
        timestamp = header.max_timestamp if header.log_append_time else header.base_timestamp + timestamp_delta
        if not offset:
            base_timestamp = timestamp
        deltas = encode_varint(timestamp - base_timestamp) + encode_varint(offset)
        start = b"\0" + deltas + encode_varint(max(key_length, -1))
        numbered += encode_varint(len(start) + end - key_at) + start
        numbered += parts[key_at:end]
    return bytes(numbered), base_timestamp


def _check_producer(header: BatchHeader) -> None:
    """Raises InvalidBatch for producer fields that Kafka can pass on but not write itself."""
    if header.producer_id == NO_PRODUCER_ID:
        wrong = header.transactional
    else:
        wrong = header.producer_epoch == NO_PRODUCER_EPOCH or (header.base_sequence < 0 and not header.control)
    if wrong:
        raise InvalidBatch(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Producer id {header.producer_id}, epoch {header.producer_epoch} and sequence {header.base_sequence} "
            "do not go together",
        )


def _level(config: LogConfig, codec: Compression) -> int | None:
    if codec is Compression.GZIP:
        return config.compression_gzip_level
    if codec is Compression.LZ4:
        return config.compression_lz4_level
    if codec is Compression.ZSTD:
        return config.compression_zstd_level
    return None


class _Errors:
    """What is wrong with records, the first `MOST_TOLD` of them."""

    __slots__ = ("count", "told")

    def __init__(self) -> None:
        self.count = 0
        self.told: list[RecordError] = []

    def more(self) -> bool:
        """Counts one more; whether it is to be told."""
        self.count += 1
        return self.count <= MOST_TOLD


def _refusal(errors: _Errors, bad_timestamp: bool) -> InvalidBatch:
    if bad_timestamp:
        return InvalidBatch(
            ErrorCode.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp", errors.told
        )
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{message}')" for index, message in errors.told[:3])
    return InvalidBatch(
        ErrorCode.INVALID_RECORD,
        f"One or more records have been rejected due to {errors.count} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]",
        errors.told,
    )
