"""What a session tells of the operations that are allowed."""

from __future__ import annotations

import pytest

from kwire.broker.session import ANONYMOUS, Session
from kwire.security.authorizer import AllowAll, Operation, ResourceType


class Allows:
    """Allows these operations, whatever the resource."""

    def __init__(self, *operations: Operation) -> None:
        self._operations = operations

    def allows(self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return operation in self._operations


def operations(authorizer, resource_type: ResourceType) -> set[Operation]:
    session = Session("PLAINTEXT", ANONYMOUS, "host", "1", authorizer)
    bits = session.authorized_operations(resource_type, "name")
    assert not bits & ~sum(1 << operation for operation in Operation)
    return {operation for operation in Operation if bits & 1 << operation}


def test_all_that_is_allowed_and_that_the_resource_knows() -> None:
    assert operations(Allows(Operation.DESCRIBE, Operation.READ, Operation.IDEMPOTENT_WRITE), ResourceType.TOPIC) == {
        Operation.DESCRIBE,
        Operation.READ,
    }


@pytest.mark.parametrize("resource_type", ResourceType)
def test_who_may_not_describe_is_told_nothing(resource_type: ResourceType) -> None:
    others = [operation for operation in Operation if operation is not Operation.DESCRIBE]
    assert operations(AllowAll(), resource_type)
    assert operations(Allows(*others), resource_type) == set()
