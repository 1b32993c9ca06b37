"""Data directories as Apache Kafka leaves them, made by hand: the metadata from messages, partitions from batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kwire.ports.real_files import PosixFileSystem
from kwire.protocol import uuids
from kwire.protocol.framed import encode_framed
from kwire.protocol.metadata_records.broker import RegisterBrokerRecord
from kwire.protocol.metadata_records.config import ConfigRecord
from kwire.protocol.metadata_records.feature_level import FeatureLevelRecord
from kwire.protocol.metadata_records.partition import PartitionRecord
from kwire.protocol.metadata_records.producer_ids import ProducerIdsRecord
from kwire.protocol.metadata_records.topic import TopicRecord
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.control import ControlType
from kwire.protocol.records.record import Record
from kwire.protocol.schema import Message
from kwire.storage import checkpoints, layout
from tests.storage.support import batch

CLUSTER = "7d8X9wEhQ0iNjRJ6QKIW2A"
NODE = 3
FILES = PosixFileSystem()
FEATURES = [
    FeatureLevelRecord(name="metadata.version", feature_level=27),
    FeatureLevelRecord(name="group.version", feature_level=1),
    FeatureLevelRecord(name="transaction.version", feature_level=2),
]


def an_id(number: int) -> bytes:
    return bytes([number]) * 16


def written(message: Message) -> bytes:
    return encode_framed(message, message.max_version)


def metadata_batch(messages: Sequence[Message], base_offset: int) -> bytes:
    records = [Record(base_offset + i, 0, None, written(message), []) for i, message in enumerate(messages)]
    return build_batch(records, base_offset=base_offset, leader_epoch=1)


def control_batch(kind: ControlType, base_offset: int) -> bytes:
    key = (0).to_bytes(2, "big") + int(kind).to_bytes(2, "big")
    return build_batch(
        [Record(base_offset, 0, key, b"\0\0", [])], base_offset=base_offset, leader_epoch=1, control=True
    )


def topic(name: str, number: int, partitions: int = 1, **fields: object) -> list[Message]:
    """The records of a topic whose partitions this broker has."""
    values = {"replicas": [NODE], "isr": [NODE], "leader": NODE, "leader_epoch": 4, "partition_epoch": 7, **fields}
    found: list[Message] = [TopicRecord(name=name, topic_id=an_id(number))]
    for index in range(partitions):
        found.append(PartitionRecord(partition_id=index, topic_id=an_id(number), **values))  # type: ignore[arg-type]
    return found


def config(kind: int, name: str, key: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


class ApacheDirs:
    """The log dirs of broker NODE; the first one has the metadata."""

    def __init__(self, folder: Path, count: int = 1, *, clean: bool = True) -> None:
        self.paths = [folder / f"apache-{number}" for number in range(count)]
        self.metadata = self.paths[0] / layout.CLUSTER_METADATA_DIR
        self.metadata.mkdir(parents=True)
        for number, path in enumerate(self.paths):
            path.mkdir(exist_ok=True)
            self.identify(path, number)
            if clean:
                (path / layout.CLEAN_SHUTDOWN).write_bytes(checkpoints.encode_clean_shutdown(9))

    @property
    def names(self) -> list[str]:
        return [str(path) for path in self.paths]

    def identify(self, path: Path, number: int, **properties: str) -> None:
        values = {"version": "1", "cluster.id": CLUSTER, "node.id": str(NODE)}
        values["directory.id"] = uuids.to_text(self.dir_id(number))
        values |= {name.replace("_", "."): value for name, value in properties.items()}
        (path / layout.META_PROPERTIES).write_bytes(checkpoints.encode_meta_properties(values))

    def dir_id(self, number: int) -> bytes:
        return an_id(0xD0 + number)

    def log(self, *messages: Message, features: Iterable[Message] = FEATURES) -> None:
        """Makes these the metadata's log, in one batch behind a leader's control record."""
        registered = RegisterBrokerRecord(
            broker_id=NODE, log_dirs=[self.dir_id(number) for number in range(len(self.paths))]
        )
        data = control_batch(ControlType.LEADER_CHANGE, 0)
        data += metadata_batch([*features, registered, ProducerIdsRecord(next_producer_id=5000), *messages], 1)
        (self.metadata / layout.segment_name(0, layout.LOG)).write_bytes(data)

    def partition(
        self, name: str, number: int, index: int = 0, *, in_dir: int = 0, values: Sequence[str] = ("a", "b")
    ) -> Path:
        """The folder of a partition with one batch in it."""
        folder = self.paths[in_dir] / f"{name}-{index}"
        folder.mkdir()
        (folder / layout.segment_name(0, layout.LOG)).write_bytes(batch(list(values)))
        (folder / layout.segment_name(0, layout.OFFSET_INDEX)).touch()
        (folder / layout.segment_name(0, layout.TIME_INDEX)).touch()
        (folder / layout.LEADER_EPOCHS).write_bytes(checkpoints.encode_epochs([(0, 0)]))
        (folder / layout.PARTITION_METADATA).write_bytes(
            checkpoints.encode_partition_metadata(uuids.to_text(an_id(number)))
        )
        return folder
