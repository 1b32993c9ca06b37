"""Who asks a coordinator."""

from __future__ import annotations

from typing import NamedTuple


class Caller(NamedTuple):
    """The client of a request, and the request's version."""

    client_id: str
    client_host: str
    """As Kafka shows it: "/127.0.0.1"."""
    api_version: int
