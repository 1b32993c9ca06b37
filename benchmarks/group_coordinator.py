"""A broker that is ready for consumers: each asks for the coordinator of its group, though it never joins it."""

from __future__ import annotations

import trio

from benchmarks.client import connect
from kwire.client.connection import Connection
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.heartbeat import HeartbeatRequest

_PATIENCE_S = 120.0
_PAUSE_S = 0.05


def await_coordinator(bootstrap: str) -> None:
    """Returns when groups have a coordinator, raises trio.TooSlowError where they have none within two minutes.

    A new broker creates the 50 partitions of its internal topic when it is first asked, which would be counted as the
    work of reading.
    """
    trio.run(_await, bootstrap)


async def _await(bootstrap: str) -> None:
    connection = await connect(bootstrap)
    try:
        await coordinated(connection, "benchmark")
    finally:
        connection.close()


async def coordinated(connection: Connection, group_id: str) -> None:
    """Waits until the group has one: Apache Kafka makes its internal topic and loads it behind the answer."""
    with trio.fail_after(_PATIENCE_S):
        while True:
            found = await connection.call(FindCoordinatorRequest(coordinator_keys=[group_id]))
            if not found.coordinators[0].error_code:
                heartbeat = await connection.call(
                    HeartbeatRequest(group_id=group_id, generation_id=1, member_id="nobody")
                )
                if heartbeat.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                    return
            await trio.sleep(_PAUSE_S)
