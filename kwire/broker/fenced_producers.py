"""What a fenced producer is told: PRODUCER_FENCED where its version of the request knows that error (KIP-588)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.broker.context import RequestContext


def as_known_to(context: RequestContext, since: int, error: KafkaError) -> KafkaError:
    """The error, INVALID_PRODUCER_EPOCH in place of PRODUCER_FENCED for clients before version `since`."""
    if error.code is ErrorCode.PRODUCER_FENCED and context.api_version < since:
        return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message)
    return error
