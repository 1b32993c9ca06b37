"""The types of record of each internal topic, by the number that a key begins with.

Those of share groups and streams groups (9 to 15, and 17 on) have no declarations: nothing here keeps such groups.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.protocol.coordinator_records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kwire.protocol.coordinator_records.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from kwire.protocol.coordinator_records.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from kwire.protocol.coordinator_records.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from kwire.protocol.coordinator_records.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from kwire.protocol.coordinator_records.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from kwire.protocol.coordinator_records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kwire.protocol.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue
from kwire.protocol.coordinator_records.legacy_offset_commit import LegacyOffsetCommitKey, LegacyOffsetCommitValue
from kwire.protocol.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue
from kwire.protocol.coordinator_records.transaction_log import TransactionLogKey, TransactionLogValue
from kwire.protocol.schema import Message


class RecordType(NamedTuple):
    """The classes of a record's key and value."""

    key: type[Message]
    value: type[Message]


RecordTypes = dict[int, RecordType]


def _by_number(*types: tuple[type[Message], type[Message]]) -> RecordTypes:
    return {key.api_key: RecordType(key, value) for key, value in types}


GROUP_RECORD_TYPES = _by_number(
    (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
    (OffsetCommitKey, OffsetCommitValue),
    (GroupMetadataKey, GroupMetadataValue),
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
)
"""Of __consumer_offsets."""

TRANSACTION_RECORD_TYPES = _by_number((TransactionLogKey, TransactionLogValue))
"""Of __transaction_state."""
