"""Apache Kafka's own classes read the records of `__remote_log_metadata`, and look for them where kwire puts them."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

from compat_tests.java_tools.tools import JavaTools
from compat_tests.tiered.tier import copies, create, in_directory, produce, settings, until_tiered
from jvm import apache_kafka, programs
from kwire.cluster.tiering.metadata import partition_of
from kwire.protocol import uuids
from kwire.protocol.remote_log_records.records import (
    RemoteLogSegmentIdEntry,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
    SegmentLeaderEpochEntry,
    TopicIdPartitionEntry,
)
from kwire.protocol.remote_log_records.serde import decode_record, encode_record
from kwire.storage.tiered.remote_segment import TopicIdPartition
from kwire.testing.process import BrokerProcess

PARTITION = TopicIdPartitionEntry(name="orders", id=bytes(range(16)), partition=3)
SEGMENT = RemoteLogSegmentIdEntry(topic_id_partition=PARTITION, id=bytes(range(16, 32)))
RECORDS = [
    RemoteLogSegmentMetadataRecord(
        remote_log_segment_id=SEGMENT,
        start_offset=42,
        end_offset=1 << 40,
        broker_id=7,
        max_timestamp_ms=1_700_000_000_000,
        event_timestamp_ms=1_700_000_000_001,
        segment_leader_epochs=[SegmentLeaderEpochEntry(leader_epoch=5, offset=42)],
        segment_size_in_bytes=1 << 30,
        txn_index_empty=empty,
    )
    for empty in (False, True)
] + [
    RemoteLogSegmentMetadataUpdateRecord(
        remote_log_segment_id=SEGMENT, broker_id=7, event_timestamp_ms=1, remote_log_segment_state=state
    )
    for state in (1, 2, 3)
]
DELETIONS = [
    RemotePartitionDeleteMetadataRecord(
        topic_id_partition=PARTITION, broker_id=7, event_timestamp_ms=1, remote_partition_delete_state=state
    )
    for state in (0, 1, 2)
]


def ask(lines: Sequence[str], folder: Path) -> list[str]:
    """What Apache Kafka answers to each line."""
    source = Path(__file__).with_name("RemoteLogRecords.java")
    command = programs.command([source], apache_kafka.class_path(), folder)
    done = subprocess.run(
        [*command, source.stem], input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    return done.stdout.split("\n")[: len(lines)]


def test_records_come_back_and_stand_where_kafka_looks(tmp_path: Path) -> None:
    draw = random.Random(1)
    written = [encode_record(record) for record in (*RECORDS, *DELETIONS)]
    partitions = [TopicIdPartition("t", draw.randbytes(16), draw.randrange(1000)) for _ in range(200)]
    lines = [f"record {value.hex()}" for value in written]
    lines += [f"partition {uuids.to_text(of.topic_id)} {of.partition} 50" for of in partitions]
    answers = ask(lines, tmp_path)
    assert [bytes.fromhex(answer) for answer in answers[: len(written)]] == written
    assert [decode_record(value) for value in written] == [*RECORDS, *DELETIONS]
    assert [int(answer) for answer in answers[len(written) :]] == [partition_of(of, 50) for of in partitions]


def test_the_stock_tools_know_tiered_topics(tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    with BrokerProcess(settings(in_directory(remote))) as broker:
        create(broker, "t")
        produce(broker, "t", [b"%06d" % number * 200 for number in range(4000)])
        until_tiered(broker, "t")
        tools = JavaTools(broker.bootstrap)
        try:
            earliest, local, tiered, latest = (
                int(tools.run("GetOffsetShell", "--topic", "t", "--time", time).lines[0].split(":")[2])
                for time in ("earliest", "earliest-local", "latest-tiered", "latest")
            )
            assert 0 == earliest < local <= tiered + 1 < latest == 4000
            said = tools.run(
                "ConsoleConsumer",
                *("--topic", "__remote_log_metadata", "--from-beginning", "--timeout-ms", "8000"),
                "--formatter",
                "org.apache.kafka.server.log.remote.metadata.storage.serialization."
                "RemoteLogMetadataSerde$RemoteLogMetadataFormatter",
            ).output
            assert said.count("state=COPY_SEGMENT_STARTED") == said.count("state=COPY_SEGMENT_FINISHED") > 1
            log = min(copies(remote))
            dumped = tools.run("DumpLogSegments", "--files", str(log), bootstrap=False).lines
            assert any(line.startswith("baseOffset: 0 ") for line in dumped)
        finally:
            tools.close()
