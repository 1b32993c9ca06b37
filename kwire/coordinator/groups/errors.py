"""What members and admins are told when a group's records could not be stored."""

from __future__ import annotations

from kwire.protocol.errors import ErrorCode, KafkaError

_TOLD = {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""By the error of the write. Clients of groups know how to go on with these alone."""


def as_group_error(error: KafkaError) -> KafkaError:
    """The error as a client of a group is told it: without the text, which is about the log."""
    told = _TOLD.get(error.code)
    return error if told is None else KafkaError(told)
