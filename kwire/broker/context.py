"""What a handler knows of a request besides its body."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.broker.session import Session


class RequestRefused(Exception):
    """The request can't be answered; its connection is to be closed, with this one line in the log."""


class RequestContext:
    """One request's header and session."""

    __slots__ = ("api_version", "client_id", "session")

    def __init__(self, api_version: int, client_id: str | None, session: Session) -> None:
        self.api_version = api_version
        self.client_id = client_id
        self.session = session
