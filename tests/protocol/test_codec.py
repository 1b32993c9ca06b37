"""What the codec promises besides agreeing with construct: parts, defaults, refusals, views onto the frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from kwire.ports.files import FileSlice
from kwire.protocol import codec
from kwire.protocol.codec import reference
from kwire.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kwire.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kwire.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kwire.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.schema import Message


@dataclass
class _Bytes:
    """As much of a File as a FileSlice reads."""

    data: bytes

    def pread(self, size: int, position: int) -> bytes:
        return self.data[position : position + size]


def _file_slice(data: bytes) -> FileSlice:
    return FileSlice(_Bytes(b"??" + data + b"??"), 2, len(data))  # type: ignore[arg-type]


def _fetched(*records: Any) -> FetchResponse:
    partitions = [PartitionData(partition_index=at, records=item) for at, item in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=b"t" * 16, partitions=partitions)])


@pytest.mark.parametrize("version", [4, 11, 12, 18])
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 4095, 4096, 100_000])
@pytest.mark.parametrize(
    "hold", [bytes, memoryview, bytearray, _file_slice, lambda data: [data[:3], memoryview(data[3:])]]
)
def test_records_are_written_whatever_holds_them(version: int, size: int, hold: Any) -> None:
    data = b"r" * size
    expected = reference.encode(_fetched(data, None, b"last"), version)
    message = _fetched(hold(data), None, b"last")
    assert codec.encode(message, version) == expected
    parts = codec.encode_parts(message, version)
    assert sum(len(part) for part in parts) == len(expected)


def test_large_records_and_slices_of_files_stay_parts_of_their_own() -> None:
    large, sliced = memoryview(b"l" * 5000), _file_slice(b"f")
    parts = codec.encode_parts(_fetched(b"small", [large, sliced], b"small", memoryview(b"small")), 18)
    assert [part is large or part is sliced for part in parts] == [False, True, True, False]
    assert [bytes(part).count(b"small") for part in (parts[0], parts[3])] == [1, 2]  # type: ignore[arg-type]


def test_a_message_without_large_records_is_one_part() -> None:
    assert codec.encode_parts(_fetched(b"small", b"small"), 18) == [codec.encode(_fetched(b"small", b"small"), 18)]
    assert codec.encode_parts(ApiVersionsRequest(), 0) == [b""]


def test_records_and_bytes_are_views_onto_the_frame() -> None:
    request = ProduceRequest(
        topic_data=[TopicProduceData(topic_id=b"t" * 16, partition_data=[PartitionProduceData(records=b"batch")])]
    )
    frame = b"header" + codec.encode(request, 13)
    records = codec.decode(ProduceRequest, 13, frame, 6).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    assert records == b"batch"


def test_fields_a_version_lacks_have_their_defaults() -> None:
    sent = FetchRequest(topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=3, fetch_offset=7)])])
    read = codec.decode(FetchRequest, 4, codec.encode(sent, 4))
    assert read == sent
    assert read.replica_state == ReplicaState(replica_id=-1, replica_epoch=-1)
    assert read.topics[0].partitions[0].current_leader_epoch == -1
    assert read.topics[0].topic_id == bytes(16)


def test_an_ignorable_field_is_dropped_where_the_version_lacks_it() -> None:
    partition = FetchPartition(partition=3, current_leader_epoch=9)
    frame = codec.encode(FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])]), 8)
    assert codec.decode(FetchRequest, 8, frame).topics[0].partitions[0].current_leader_epoch == -1


@pytest.mark.parametrize(
    ("sent", "version", "named"),
    [
        (FetchRequest(replica_state=ReplicaState(replica_id=2)), 14, "FetchRequest.replica_state"),
        (FetchRequest(replica_id=2), 15, "FetchRequest.replica_id"),
        (
            FetchRequest(topics=[FetchTopic(partitions=[FetchPartition(last_fetched_epoch=1)])]),
            11,
            "last_fetched_epoch",
        ),
        (AddPartitionsToTxnRequest(v3_and_below_producer_id=1), 4, "v3_and_below_producer_id"),
        (FetchRequest(unknown_tags={9: b"x"}), 11, "unknown_tags"),
        (MetadataRequest(allow_auto_topic_creation=False), 3, "allow_auto_topic_creation"),
    ],
)
def test_a_value_the_version_cannot_carry_is_refused(sent: Message, version: int, named: str) -> None:
    with pytest.raises(codec.UnsupportedFieldError, match=named):
        codec.encode(sent, version)
    with pytest.raises(codec.UnsupportedFieldError, match=named.rpartition(".")[2]):
        reference.encode(sent, version)


@pytest.mark.parametrize(
    ("sent", "version"),
    [
        (FetchRequest(rack_id=None), 11),  # type: ignore[arg-type]
        (FetchRequest(rack_id=None), 18),  # type: ignore[arg-type]
        (FetchRequest(topics=None), 18),  # type: ignore[arg-type]
        (FetchRequest(max_wait_ms=2**31), 18),
        (FetchRequest(max_wait_ms=None), 4),  # type: ignore[arg-type]
        (FetchRequest(rack_id="x" * 0x8000), 11),
        (FetchRequest(rack_id="x" * 0x8000), 18),
        (FetchRequest(rack_id="\ud800"), 18),
        (MetadataRequest(topics=None), 0),
    ],
)
def test_a_value_outside_its_type_is_refused(sent: Message, version: int) -> None:
    with pytest.raises(codec.EncodeError, match=type(sent).__name__):
        codec.encode(sent, version)


def test_null_and_empty_are_told_apart() -> None:
    for version in (1, 8, 9, 13):
        for topics in (None, [], [MetadataRequestTopic(name="t")]):
            frame = codec.encode(MetadataRequest(topics=topics), version)
            assert codec.decode(MetadataRequest, version, frame).topics == topics


def test_a_nullable_struct_has_a_byte_before_it() -> None:
    assignment = Assignment(topic_partitions=[TopicPartitions(topic_id=b"t" * 16, partitions=[1, 2])])
    for given in (None, assignment):
        frame = codec.encode(ConsumerGroupHeartbeatResponse(assignment=given), 0)
        assert codec.decode(ConsumerGroupHeartbeatResponse, 0, frame).assignment == given
    assert codec.encode(ConsumerGroupHeartbeatResponse(), 0)[-2:] == b"\xff\0"


def test_unknown_tagged_fields_are_kept_and_written_in_order() -> None:
    message = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=18, max_version=4, unknown_tags={200: b"b", 7: b"a"})],
        zk_migration_ready=True,
        unknown_tags={1000: b"later"},
    )
    frame = codec.encode(message, 4)
    assert b"\x02\x07\x01a\xc8\x01\x01b" in frame
    assert frame.endswith(b"\x02\x03\x01\x01\xe8\x07\x05later")
    assert codec.decode(ApiVersionsResponse, 4, frame) == message


@pytest.mark.parametrize("size", [0, 12, 14])
@pytest.mark.parametrize("decode", [codec.decode, reference.decode])
def test_a_tagged_field_of_another_size_than_it_says_is_malformed(decode: Any, size: int) -> None:
    message = FetchRequest(replica_state=ReplicaState(replica_id=1), rack_id="r")
    frame = codec.encode(message, 18)
    assert frame.count(b"r\x01\x01\x0d") == 1
    with pytest.raises(codec.MalformedError):
        decode(FetchRequest, 18, frame.replace(b"r\x01\x01\x0d", bytes([ord("r"), 1, 1, size])) + bytes(4))


def test_bytes_behind_a_message_are_ignored_as_kafka_does() -> None:
    frame = codec.encode(MetadataRequest(topics=[]), 13)
    assert codec.decode(MetadataRequest, 13, frame + b"\0") == MetadataRequest(topics=[])
    assert codec.decode_prefix(MetadataRequest, 13, frame + b"\0") == (MetadataRequest(topics=[]), len(frame))
    assert codec.decode_prefix(MetadataRequest, 13, b"header" + frame, 6) == (
        MetadataRequest(topics=[]),
        6 + len(frame),
    )
    assert reference.decode(MetadataRequest, 13, frame + b"\0") == MetadataRequest(topics=[])


def test_broken_utf8_is_mended_as_kafka_does() -> None:
    frame = codec.encode(MetadataRequest(topics=[MetadataRequestTopic(name="t?")]), 0).replace(b"?", b"\xff")
    topics = codec.decode(MetadataRequest, 0, frame).topics
    assert topics == [MetadataRequestTopic(name="t\N{REPLACEMENT CHARACTER}")]


@pytest.mark.parametrize("version", [-1, 3, 19])
def test_a_version_that_does_not_exist_is_refused(version: int) -> None:
    with pytest.raises(codec.UnsupportedVersionError, match="FetchRequest has versions 4 to 18"):
        codec.decode(FetchRequest, version, b"")
    with pytest.raises(codec.UnsupportedVersionError):
        codec.encode(FetchRequest(), version)
