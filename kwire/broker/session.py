"""A connection as the handlers see it."""

from __future__ import annotations

from dataclasses import dataclass

from kwire.security.authorizer import CLUSTER_NAME, SUPPORTED_OPERATIONS, Authorizer, Operation, ResourceType

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a connection that did not authenticate (Kafka's KafkaPrincipal.ANONYMOUS)."""


@dataclass(frozen=True, slots=True)
class Session:
    """Where a connection came in, from whom, and who decides what it may do."""

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
