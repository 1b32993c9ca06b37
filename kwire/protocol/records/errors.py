"""What reading or validating a record batch may raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kwire.protocol.errors import ErrorCode, KafkaError


class CorruptBatchError(KafkaError):
    """Bytes that are not a well-formed record batch.

    The code says how Kafka would answer a produce request that carries them: CORRUPT_MESSAGE (length, magic or CRC),
    INVALID_RECORD (records that do not fit their batch) or UNKNOWN_SERVER_ERROR (data that cannot be decompressed).
    """


class RecordError(NamedTuple):
    """Why one record of a batch was refused (`record_errors` of a Produce response, KIP-467)."""

    batch_index: int
    """Position of the record in its batch, from 0."""
    message: str | None


class InvalidBatch(KafkaError):
    """A produced batch that the leader refuses; `record_errors` names the records, where records are to blame."""

    def __init__(self, code: ErrorCode, message: str | None = None, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors
