"""Kafka's small text files: a version, a count, one line an entry; and the three that are not of that kind.

    recovery-point-offset-checkpoint       leader-epoch-checkpoint       partition.metadata
        0                                      0                             version: 0
        2                                      1                             topic_id: 7d8X9wEhQ0iNjRJ6QKIW2A
        orders 0 4711                          3 4000      epoch, start
        orders 1 12

    meta.properties                        .kafka_cleanshutdown
        #                                      {"version":0,"brokerEpoch":7}
        cluster.id=7d8X9wEhQ0iNjRJ6QKIW2A
        directory.id=mKH3c3eAQGuF4hD6w3yq9Q
        node.id=1
        version=1

The functions that read take the file's content and raise `CorruptCheckpoint`, never anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

_VERSION = "0"
_NO_EPOCHS = (b"", b"0\n0\n")

TopicPartition = tuple[str, int]


_NO_PARTITIONS: Mapping[str, TopicPartition] = MappingProxyType({})


class CorruptCheckpoint(Exception):
    """A file has not the form it should have."""


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """An offset checkpoint of a log dir."""
    return encode_offset_file(len(offsets), [encode_offset_lines(offsets)])


def encode_offset_lines(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Of an offset checkpoint the lines of these partitions."""
    return "".join([f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]).encode()


def encode_offset_file(count: int, lines: Iterable[bytes]) -> bytes:
    """An offset checkpoint of `count` partitions, all of whose lines are given."""
    return b"".join([f"{_VERSION}\n{count}\n".encode(), *lines])


def decode_offsets(data: bytes, known: Mapping[str, TopicPartition] = _NO_PARTITIONS) -> dict[TopicPartition, int]:
    """Empty for an empty file, as Kafka creates it before it has anything to say.

    `known`: partitions that the caller has already, by "topic partition"; they are the keys then, and not copies.
    """
    offsets = {}
    for line in _lines(data):
        name, _, offset = line.rpartition(" ")
        partition = known.get(name)
        if partition is None:
            topic, number, offset = _fields(line, 3)
            partition = topic, _number(number)
        offsets[partition] = _number(offset)
    return offsets


def encode_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    """The leader epochs of a partition: (epoch, start offset), ascending."""
    return _encode(f"{epoch} {start}" for epoch, start in epochs)


def decode_epochs(data: bytes) -> list[tuple[int, int]]:
    if data in _NO_EPOCHS:
        return []
    entries = (_fields(line, 2) for line in _lines(data))
    return [(_number(epoch), _number(start)) for epoch, start in entries]


def encode_partition_metadata(topic_id_text: str) -> bytes:
    return f"version: 0\ntopic_id: {topic_id_text}".encode()


def decode_partition_metadata(data: bytes) -> str:
    """The topic id's base64 text."""
    fields = dict(_pairs(data, ":"))
    if fields.get("version") != _VERSION or len(fields.get("topic_id", "")) != 22:
        raise CorruptCheckpoint(f"no topic id of version 0 in {data[:100]!r}")
    return fields["topic_id"]


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode()


def encode_meta_properties(properties: Mapping[str, str]) -> bytes:
    return ("#\n" + "".join(f"{key}={properties[key]}\n" for key in sorted(properties))).encode()


def decode_meta_properties(data: bytes) -> dict[str, str]:
    return dict(_pairs(data, "="))


def _encode(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "\n".join([_VERSION, str(len(entries)), *entries, ""]).encode()


def _lines(data: bytes) -> list[str]:
    lines = _text(data).splitlines()
    if not lines:
        return []
    if lines[0].strip() != _VERSION:
        raise CorruptCheckpoint(f"version {lines[0]!r} is not known")
    if len(lines) < 2:
        raise CorruptCheckpoint("the count of entries is missing")
    entries = [line for line in lines[2:] if line.strip()]
    if len(entries) != _number(lines[1].strip()):
        raise CorruptCheckpoint(f"{len(entries)} entries where {lines[1]} were announced")
    if not data.endswith(b"\n"):
        raise CorruptCheckpoint("the last line has no end")
    return entries


def _fields(line: str, count: int) -> list[str]:
    fields = line.split()
    if len(fields) != count:
        raise CorruptCheckpoint(f"an entry has not {count} fields")
    return fields


def _pairs(data: bytes, separator: str) -> Iterable[tuple[str, str]]:
    for line in _text(data).splitlines():
        if line.strip() and not line.startswith(("#", "!")):
            key, _, value = line.partition(separator)
            yield key.strip(), value.strip()


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(str(error)) from error


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise CorruptCheckpoint(f"{text!r} is not a number") from error
