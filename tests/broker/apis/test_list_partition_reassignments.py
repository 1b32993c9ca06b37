"""ListPartitionReassignments where nothing is moved."""

from __future__ import annotations

import pytest

from kwire.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.broker.scene import running


@pytest.mark.parametrize("asked", [None, [], [("t", [0, 1, -1])], [("t", [])], [("absent", [0])], [("bad name", [0])]])
async def test_nothing_is_moved(asked: list[tuple[str, list[int]]] | None, autojump_clock) -> None:
    """Whether partitions exist is no question here."""
    async with running() as scene:
        await scene.create("t")
        topics = None
        if asked is not None:
            topics = [ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes) for name, indexes in asked]
        response = await scene.call(ListPartitionReassignmentsRequest(topics=topics))
        assert (response.error_code, response.error_message, response.topics) == (0, None, [])
