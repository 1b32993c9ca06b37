"""TopicRecord (2) and RemoveTopicRecord (9): a topic's name and id; its partitions have records of their own."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import STRING, UUID


class TopicRecord(Message, api_key=2, versions="0", flexible_from=0):
    """A topic was created."""

    name: str = field(STRING, "0+")
    topic_id: bytes = field(UUID, "0+")


class RemoveTopicRecord(Message, api_key=9, versions="0", flexible_from=0):
    """A topic was deleted, with its partitions and configs."""

    topic_id: bytes = field(UUID, "0+")
