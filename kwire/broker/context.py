"""What a handler knows of a request besides its body."""

from __future__ import annotations

from dataclasses import dataclass

from kwire.security.authorizer import CLUSTER_NAME, SUPPORTED_OPERATIONS, Authorizer, Operation, ResourceType

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a connection that did not authenticate (Kafka's KafkaPrincipal.ANONYMOUS)."""


class RequestRefused(Exception):
    """The request can't be answered; its connection is to be closed, with this one line in the log."""


@dataclass(frozen=True, slots=True)
class Session:
    """A connection as the handlers see it: where it came in, from whom, and who decides what it may do."""

    listener: str
    """The name of the listener the client connected to; Metadata answers with that listener's addresses."""
    principal: str
    client_host: str
    connection_id: str
    authorizer: Authorizer

    def allows(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Whether this session's principal may do `operation` on the named resource."""
        return self.authorizer.allows(self.principal, self.client_host, operation, resource_type, name)

    def authorized_operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """A bit field, one bit an operation number, of all that is allowed on the resource (KIP-430).

        Who may not describe the resource is told of nothing.
        """
        if not self.allows(Operation.DESCRIBE, resource_type, name):
            return 0
        bits = 0
        for operation in SUPPORTED_OPERATIONS[resource_type]:
            if self.allows(operation, resource_type, name):
                bits |= 1 << operation
        return bits


class RequestContext:
    """One request's header and session."""

    __slots__ = ("api_version", "client_id", "session")

    def __init__(self, api_version: int, client_id: str | None, session: Session) -> None:
        self.api_version = api_version
        self.client_id = client_id
        self.session = session
