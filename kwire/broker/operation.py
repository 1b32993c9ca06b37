"""A coordinator's operation that a client waits for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from kwire.broker.parked import Parked
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.schema import Message


class ParkedOperation(Parked):
    """A JoinGroup or SyncGroup: it may wait as long as the slowest member of the group takes."""

    def __init__(self, operation: Callable[[], Awaitable[Message]]) -> None:
        self._operation = operation
        self._scope = trio.CancelScope()

    async def response(self) -> Message:
        """Raises what the operation raises; NOT_COORDINATOR where the broker stops first."""
        with self._scope:
            return await self._operation()
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def hurry(self) -> None:
        self._scope.cancel()
