"""A Fetch request that is known from an earlier one, and finds that the client has read all there is.

It stands still until one of its partitions changes. That one alone is looked at, and if there is something to tell,
the request is answered as it would have been at once. Whatever else comes of it (too little to send, an error,
something that is not in memory, no time left) is the handler's, which has what is left of the time.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Protocol

from kwire.broker.dispatch import understand
from kwire.broker.parked import Parked, Waiting
from kwire.ports.at_once import Signal

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.dispatch import Call, Parts
    from kwire.cluster.partition import Partition
    from kwire.protocol.schema import Message

Wanted = tuple[int, "Partition", int, int, int]
"""A partition that is asked for: its index, the partition, the leader epoch that the client knows, fetch offset, most
bytes."""


class Asked(Protocol):
    """What the client asks for (`fetch_without_session`)."""

    def may_wait(self, targets: list[Wanted]) -> bool:
        """Whether there is nothing to be told of any of them until it changes."""

    def told(self, broker: Broker, targets: list[Wanted], correlation_id: int) -> Parts | None:
        """The answer, where it can be given at once."""


class WaitingFetch(Waiting):
    """A `kwire.cluster.waiting.Waiter`."""

    at_once = True

    def __init__(
        self, broker: Broker, asked: Asked, call: Call, frame: memoryview, targets: list[Wanted], max_wait_ms: int
    ) -> None:
        """`targets`, of which `asked` says that they may be waited for; `call`, of which the request is read from the
        frame when somebody has to know it."""
        self.call = call
        self._frame = bytes(frame)  # a view would keep all that came with it
        self._broker = broker
        self._asked = asked
        self._targets = targets
        self._deadline = broker.clock.monotonic() + max_wait_ms / 1000
        self._changed = Signal()
        self._due: dict[Partition, None] = {}
        """The partitions that changed since they were looked at."""
        self._hurried = False
        self._handled: Parked | None = None

    def wake(self, partition: Partition) -> None:
        self._due[partition] = None
        self._changed.set()

    def hurry(self) -> None:
        self._hurried = True
        self._changed.set()
        if self._handled is not None:
            self._handled.hurry()

    async def response(self) -> Message | Parts:
        try:
            answer = await self._until_told()
        except Exception:
            self._read_request()  # which is to be told that it failed
            raise
        if answer is not None:
            return answer
        self._read_request()
        return await self._by_handler()

    def _read_request(self) -> None:
        call = self.call
        call.request = understand(self._broker, call.session, memoryview(self._frame)).request

    async def _until_told(self) -> Parts | None:
        """The answer; None where it is the handler's."""
        asked = self._asked
        wanted = {target[1]: target for target in self._targets}
        alarm = self._broker.alarms.at(self._deadline, self.hurry)
        for partition in wanted:
            partition.watch(self)
        try:
            while not self._hurried:
                await self._changed.wait()
                self._changed = Signal()
                due, self._due = self._due, {}
                if not self._hurried and not asked.may_wait([wanted[partition] for partition in due]):
                    return asked.told(self._broker, self._targets, self.call.correlation_id)
            return None
        finally:
            alarm.cancel()
            for partition in wanted:
                partition.unwatch(self)

    async def _by_handler(self) -> Message | Parts:
        from kwire.broker.apis.fetch import handle  # which knows this module by its templates

        call, broker = self.call, self._broker
        left = 0.0 if self._hurried else max(self._deadline - broker.clock.monotonic(), 0)
        call.request.max_wait_ms = ceil(left * 1000)
        found = {index: partition for index, partition, _, _, _ in self._targets}
        response = await handle(broker, call, call.request, found)
        if not isinstance(response, Parked):
            return response
        self._handled = response
        if self._hurried:
            response.hurry()
        return await response.response()
