"""ConsumerGroupHeartbeat requests that can't be right, whatever the group. The texts go to the client."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.coordinator.groups.consumer.member import LEFT, LEFT_STATIC
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_CLIENT_MAKES_ID_FROM = 1
"""From this version on a member makes its id itself (KIP-1082)."""


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Raises INVALID_REQUEST, UNSUPPORTED_ASSIGNOR. `assignors`: those the broker has."""
    epoch = request.member_epoch
    if version >= _CLIENT_MAKES_ID_FROM or epoch > 0 or epoch == LEFT:
        _refuse_blank(request.member_id, "MemberId can't be empty.")
    _refuse_blank(request.group_id, "GroupId can't be empty.")
    _refuse_blank(request.instance_id, "InstanceId can't be empty.")
    _refuse_blank(request.rack_id, "RackId can't be empty.")
    if epoch == 0:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == LEFT_STATIC:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEFT_STATIC:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _refuse_blank(text: str | None, message: str) -> None:
    """Java's `trim` takes control characters for blanks."""
    if text is not None and all(character <= " " for character in text):
        raise _invalid(message)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
