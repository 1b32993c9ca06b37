"""Reading __cluster_metadata-0, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.controller import read_state
from kwire.cluster.adoption.state import TOPIC, KraftState
from kwire.protocol.metadata_records.access_control import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from kwire.protocol.metadata_records.broker import UnregisterBrokerRecord
from kwire.protocol.metadata_records.client_quota import ClientQuotaRecord, EntityData
from kwire.protocol.metadata_records.delegation_token import DelegationTokenRecord, RemoveDelegationTokenRecord
from kwire.protocol.metadata_records.partition import PartitionChangeRecord
from kwire.protocol.metadata_records.scram import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from kwire.protocol.metadata_records.topic import RemoveTopicRecord, TopicRecord
from kwire.protocol.metadata_records.transaction import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.control import ControlType
from kwire.protocol.records.record import Record
from kwire.protocol.schema import Message
from kwire.storage import layout
from tests.cluster.adoption.apache import (
    FEATURES,
    FILES,
    NODE,
    ApacheDirs,
    an_id,
    config,
    control_batch,
    metadata_batch,
    topic,
)


def state_of(*messages: Message) -> KraftState:
    state = KraftState()
    for message in messages:
        state.apply(message)
    return state


def names(state: KraftState) -> list[str]:
    return sorted(topic.name for topic in state.topics.values())


def test_a_deleted_topic_is_gone_and_its_configs_too() -> None:
    state = state_of(*topic("a", 1), config(TOPIC, "a", "x", "1"), *topic("b", 2), RemoveTopicRecord(topic_id=an_id(1)))
    assert (names(state), state.configs) == (["b"], {})


def test_a_name_that_is_used_again_is_another_topic() -> None:
    state = state_of(*topic("a", 1), RemoveTopicRecord(topic_id=an_id(1)), *topic("a", 2, partitions=2))
    assert len(state.topics[an_id(2)].partitions) == 2


def test_configs_are_set_changed_and_removed() -> None:
    state = state_of(
        config(TOPIC, "a", "x", "1"),
        config(TOPIC, "a", "y", "2"),
        config(TOPIC, "a", "x", "3"),
        config(TOPIC, "a", "y", None),
        config(4, "", "z", "1"),
        config(4, "", "z", None),
    )
    assert state.configs == {(TOPIC, "a"): {"x": "3"}}


def test_each_change_of_the_leader_is_a_new_epoch() -> None:
    change = {"partition_id": 0, "topic_id": an_id(1)}
    state = state_of(
        *topic("a", 1),
        PartitionChangeRecord(**change, isr=[], eligible_leader_replicas=[NODE]),
        PartitionChangeRecord(**change, leader=-1),
        PartitionChangeRecord(**change, leader=NODE, isr=[NODE], replicas=[NODE, 8], directories=[an_id(5), an_id(6)]),
    )
    partition = state.topics[an_id(1)].partitions[0]
    assert (partition.leader_epoch, partition.partition_epoch) == (6, 10)
    assert (partition.replicas, partition.isr, partition.eligible) == ([NODE, 8], [NODE], [NODE])
    assert partition.directories == [an_id(5), an_id(6)]


def test_a_transaction_counts_as_a_whole() -> None:
    state = state_of(
        BeginTransactionRecord(),
        *topic("kept", 1),
        EndTransactionRecord(),
        BeginTransactionRecord(name="x"),
        *topic("dropped", 2),
        AbortTransactionRecord(),
        *topic("single", 3),
        BeginTransactionRecord(),
        *topic("unfinished", 4),
    )
    assert names(state) == ["kept", "single"]


def test_what_security_and_quotas_have() -> None:
    quota = ClientQuotaRecord(entity=[EntityData(entity_type="user", entity_name=None)], key="rate", value=1.0)
    gone = ClientQuotaRecord(entity=quota.entity, key="other", value=1.0)
    removal = ClientQuotaRecord(entity=quota.entity, key="other", remove=True)
    state = state_of(
        quota,
        gone,
        removal,
        AccessControlEntryRecord(id=an_id(1), principal="User:a"),
        AccessControlEntryRecord(id=an_id(2), principal="User:b"),
        RemoveAccessControlEntryRecord(id=an_id(2)),
        UserScramCredentialRecord(name="a", mechanism=1),
        UserScramCredentialRecord(name="b", mechanism=1),
        RemoveUserScramCredentialRecord(name="b", mechanism=1),
        DelegationTokenRecord(token_id="t"),
        DelegationTokenRecord(token_id="u"),
        RemoveDelegationTokenRecord(token_id="u"),
        UnregisterBrokerRecord(broker_id=9),
    )
    assert state.quotas == {((("user", None),), "rate"): 1.0}
    assert list(state.acls) == [an_id(1)]
    assert state.scram_credentials == {("a", 1)}
    assert state.delegation_tokens == {"t"}


@pytest.mark.parametrize(
    "message", [RemoveTopicRecord(topic_id=an_id(9)), PartitionChangeRecord(topic_id=an_id(1), partition_id=5)]
)
def test_what_speaks_of_nothing_known_is_refused(message: Message) -> None:
    with pytest.raises(AdoptionError, match="was not created"):
        state_of(*topic("a", 1), message)


# Files


@pytest.fixture
def dirs(tmp_path: Path) -> ApacheDirs:
    found = ApacheDirs(tmp_path)
    found.log(*topic("a", 1))
    return found


def snapshot(dirs: ApacheDirs, end_offset: int, *messages: Message, footer: bool = True) -> Path:
    data = control_batch(ControlType.SNAPSHOT_HEADER, 0) + metadata_batch(messages, 1)
    if footer:
        data += control_batch(ControlType.SNAPSHOT_FOOTER, 1 + len(messages))
    path = dirs.metadata / f"{end_offset:020d}-0000000001.checkpoint"
    path.write_bytes(data)
    return path


def read(dirs: ApacheDirs) -> KraftState:
    return read_state(FILES, str(dirs.metadata))


def test_a_log(dirs: ApacheDirs) -> None:
    state = read(dirs)
    assert names(state) == ["a"]
    assert (state.next_producer_id, state.features["group.version"]) == (5000, 1)
    assert state.brokers == {NODE: [dirs.dir_id(0)]}


def test_a_snapshot_and_the_log_behind_it(dirs: ApacheDirs) -> None:
    """The log's records below the snapshot's end count no more, those behind it do."""
    snapshot(dirs, 40, *FEATURES, *topic("b", 2))
    snapshot(dirs, 20, *FEATURES, *topic("older", 9))
    log = dirs.metadata / layout.segment_name(38, layout.LOG)
    log.write_bytes(metadata_batch([*topic("c", 3), *topic("d", 4)], 38))
    (dirs.metadata / layout.segment_name(0, layout.LOG)).unlink()
    assert names(read(dirs)) == ["b", "d"]


def test_an_interrupted_write_at_the_end(dirs: ApacheDirs) -> None:
    log = dirs.metadata / layout.segment_name(0, layout.LOG)
    whole = log.read_bytes()
    next_offset = 1 + len(FEATURES) + 2 + 2
    torn = metadata_batch(topic("late", 5), next_offset)
    for end in (len(torn) - 1, 70, 30):
        log.write_bytes(whole + torn[:end])
        assert names(read(dirs)) == ["a"]
    log.write_bytes(whole + torn[:-1] + b"\xff")
    assert names(read(dirs)) == ["a"]
    log.write_bytes(whole + torn)
    assert names(read(dirs)) == ["a", "late"]


def test_damage_amid_the_log(dirs: ApacheDirs) -> None:
    log = dirs.metadata / layout.segment_name(0, layout.LOG)
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    with pytest.raises(AdoptionError, match="byte 0: a batch with a wrong checksum"):
        read(dirs)


def test_a_segment_that_is_missing(dirs: ApacheDirs) -> None:
    (dirs.metadata / layout.segment_name(90, layout.LOG)).write_bytes(metadata_batch([TopicRecord(name="z")], 90))
    with pytest.raises(AdoptionError, match="offsets 8 to 90 are missing"):
        read(dirs)


def test_a_log_that_begins_behind_the_snapshot(dirs: ApacheDirs) -> None:
    first = dirs.metadata / layout.segment_name(0, layout.LOG)
    first.rename(dirs.metadata / layout.segment_name(7, layout.LOG))
    with pytest.raises(AdoptionError, match="the log begins at offset 7, and the newest snapshot ends at offset 0"):
        read(dirs)


def test_a_snapshot_without_an_end(dirs: ApacheDirs) -> None:
    path = snapshot(dirs, 3, *FEATURES, footer=False)
    with pytest.raises(AdoptionError, match="the snapshot has no end"):
        read(dirs)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(AdoptionError, match="a torn batch"):
        read(dirs)


def test_a_record_of_a_newer_kafka(dirs: ApacheDirs) -> None:
    unknown = build_batch([Record(0, 0, None, b"\1\x63\0", [])])
    (dirs.metadata / layout.segment_name(0, layout.LOG)).write_bytes(unknown)
    with pytest.raises(AdoptionError, match="metadata record type 99 is not known"):
        read(dirs)


def test_a_log_without_anything(dirs: ApacheDirs) -> None:
    (dirs.metadata / layout.segment_name(0, layout.LOG)).write_bytes(b"")
    with pytest.raises(AdoptionError, match="no metadata there"):
        read(dirs)
