"""Records of brokers of other versions."""

from __future__ import annotations

from kwire.coordinator.groups.consumer.member import ConsumerMember, MemberState
from kwire.coordinator.groups.consumer.records import (
    current_assignment_record,
    epoch_record,
    group_tombstones,
    member_record,
    member_tombstones,
    regex_tombstone,
)
from kwire.coordinator.runtime.outcome import CoordinatorRecord
from kwire.protocol.coordinator_records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kwire.protocol.coordinator_records.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from tests.coordinator.groups.consumer.support import GROUP, Member, desk, group_of, topic_id

OLD = CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=GROUP), ConsumerGroupPartitionMetadataValue())


def test_what_brokers_before_4_1_wrote_of_partitions_goes_with_the_next_epoch() -> None:
    at = desk({"t": 1})
    at.machine.replay(OLD, None)
    assert group_of(at).epochs.has_partition_metadata
    Member(at, "one").join()
    assert not group_of(at).epochs.has_partition_metadata
    written = [at.codec.decode(key, value) for key, value in at.log]
    assert CoordinatorRecord(OLD.key, None) in written


def test_brokers_before_4_2_did_not_write_when_a_member_got_a_partition() -> None:
    at = desk({"t": 1})
    at.machine.replay(member_record(GROUP, ConsumerMember("m")), None)
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=4,
        previous_member_epoch=3,
        state=77,
        assigned_partitions=[TopicPartitions(topic_id=topic_id("t"), partitions=[0])],
        partitions_pending_revocation=[],
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="m")
    at.machine.replay(CoordinatorRecord(key, value), None)
    member = group_of(at).members["m"]
    assert (member.assigned, member.state) == ({topic_id("t"): {0: 4}}, MemberState.UNKNOWN)


def test_the_end_of_what_does_not_exist_is_no_news() -> None:
    at = desk({})
    tombstones = [*group_tombstones(GROUP, ["m"], ["t.*"]), *member_tombstones(GROUP, "m"), regex_tombstone(GROUP, "t")]
    for record in tombstones:
        at.machine.replay(record, None)
    assert GROUP not in at.machine.groups
    at.machine.replay(epoch_record(GROUP, 3, 0), None)
    for record in member_tombstones(GROUP, "m"):
        at.machine.replay(record, None)
    assert group_of(at).epochs.group == 3


def test_a_log_that_lost_its_middle_has_one_owner_for_each_partition() -> None:
    at = desk({"t": 1})
    has = {topic_id("t"): {0: 1}}
    for name in ("one", "two"):
        at.machine.replay(current_assignment_record(GROUP, ConsumerMember(name, 1, assigned=has)), None)
    group = group_of(at)
    assert group.owners[topic_id("t"), 0] == "two"
    for record in member_tombstones(GROUP, "one"):
        at.machine.replay(record, None)
    assert group.owners[topic_id("t"), 0] == "two"
