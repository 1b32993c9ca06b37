"""RemoveRaftVoter (API key 81): removes a voter from the KRaft quorum."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT16, INT32, STRING, UUID


class RemoveRaftVoterRequest(Message, api_key=81, versions="0", flexible_from=0):
    """The request, version 0."""

    cluster_id: str | None = field(STRING, "0+", nullable="0+")
    voter_id: int = field(INT32, "0+")
    voter_directory_id: bytes = field(UUID, "0+")


class RemoveRaftVoterResponse(Message, api_key=81, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", ignorable=True)
