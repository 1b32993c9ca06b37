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

_VERSION = "0"

TopicPartition = tuple[str, int]


class CorruptCheckpoint(Exception):
    """A file has not the form it should have."""


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """An offset checkpoint of a log dir."""
    return _encode(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    """Empty for an empty file, as Kafka creates it before it has anything to say."""
    offsets = {}
    for line in _decode(data, fields=3):
        topic, partition, offset = line
        offsets[topic, _number(partition)] = _number(offset)
    return offsets


def encode_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    """The leader epochs of a partition: (epoch, start offset), ascending."""
    return _encode(f"{epoch} {start}" for epoch, start in epochs)


def decode_epochs(data: bytes) -> list[tuple[int, int]]:
    return [(_number(epoch), _number(start)) for epoch, start in _decode(data, fields=2)]


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


def _decode(data: bytes, fields: int) -> list[list[str]]:
    lines = _text(data).splitlines()
    if not lines:
        return []
    if lines[0].strip() != _VERSION:
        raise CorruptCheckpoint(f"version {lines[0]!r} is not known")
    if len(lines) < 2:
        raise CorruptCheckpoint("the count of entries is missing")
    entries = [line.split() for line in lines[2:] if line.strip()]
    if len(entries) != _number(lines[1].strip()):
        raise CorruptCheckpoint(f"{len(entries)} entries where {lines[1]} were announced")
    if any(len(entry) != fields for entry in entries):
        raise CorruptCheckpoint(f"an entry has not {fields} fields")
    return entries


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
