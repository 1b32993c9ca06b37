"""AddRaftVoter (API key 80): adds a voter to the KRaft quorum."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT16, INT32, STRING, UINT16, UUID, Array


class Listener(Struct):
    name: str = field(STRING, "0+")
    host: str = field(STRING, "0+")
    port: int = field(UINT16, "0+")


class AddRaftVoterRequest(Message, api_key=80, versions="0-1", flexible_from=0):
    """The request, versions 0 to 1."""

    cluster_id: str | None = field(STRING, "0+", nullable="0+")
    timeout_ms: int = field(INT32, "0+")
    voter_id: int = field(INT32, "0+")
    voter_directory_id: bytes = field(UUID, "0+")
    listeners: list[Listener] = field(Array(Listener), "0+")
    ack_when_committed: bool = field(BOOL, "1+", default=True)


class AddRaftVoterResponse(Message, api_key=80, versions="0-1", flexible_from=0):
    """The response, versions 0 to 1."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", ignorable=True)
