"""Responses made comparable: what two brokers cannot have in common gets a name that both share.

A message becomes a tree of dicts, lists and plain values. Lists whose order says nothing become dicts by what their
items are about. Ids, addresses and times of now are replaced; everything else stays as it was on the wire.
"""

from __future__ import annotations

import re
from typing import Any

from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import HEADER_SIZE, LOG_OVERHEAD, read_header
from kwire.protocol.records.record import iter_records
from kwire.protocol.schema import Struct

KEYS = (
    ("resource_type", "resource_name"),
    ("topic",),
    ("topic_name",),
    ("name",),
    ("topic_id",),
    ("partition_index",),
    ("partition",),
    ("index",),
    ("key",),
    ("node_id",),
    ("broker_id",),
    ("api_key",),
    ("log_dir",),
    ("group_instance_id", "member_id"),
    ("member_id",),
    ("group_id",),
    ("transactional_id",),
)
"""What the items of a list are about: the first of these fields that say something."""
ORDERED = frozenset({"synonyms", "record_errors", "aborted_transactions", "active_producers"})
"""Lists whose order says something."""
_PRODUCER_IDS = ("producer_id", "previous_producer_id", "next_producer_id")
DAY_MS = 86_400_000
_TIMES = re.compile(r"\b1[0-9]{12}\b")
_MEMBER_ID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[\w-]{22}$")
"""What a coordinator appends to a client id or an instance id, or the whole id in a group of the consumer protocol."""
_ENDLESSLY_LONG_AGO = re.compile(r"-922337[0-9]{13}\b")
"""Now less the largest int64."""


class Names:
    """What one broker calls things that the other one calls otherwise."""

    def __init__(self, host: str, port: int, started_ms: int) -> None:
        self._address = (host, port)
        self._started_ms = started_ms
        self._topics: dict[bytes, str] = {}
        self._numbers: dict[tuple[str, int], str] = {}
        self._texts: dict[str, str] = {f"{host}:{port}": "<its address>"}

    def topic(self, topic_id: bytes, name: str) -> None:
        """From now on the id is called after the topic."""
        self._topics[topic_id] = f"<id of {name}>"
        self._texts[uuids.to_text(topic_id)] = f"<id of {name}>"

    def of(self, field: str, value: Any) -> Any:
        """The name that stands for a value of this field."""
        if isinstance(value, str):
            return self._of_text(field, value)
        if isinstance(value, bytes | memoryview):
            data = bytes(value)
            if field == "topic_id" and data != uuids.ZERO:
                return self._topics.get(data, f"<unknown {data.hex()}>")
            return data
        if isinstance(value, int) and not isinstance(value, bool):
            return self._of_number(field, value)
        return value

    def _of_text(self, field: str, value: str) -> str:
        if field == "host" and value == self._address[0]:
            return "<its host>"
        if field in ("cluster_id", "log_dir") and value:
            return f"<its {field}>"
        if field in ("member_id", "leader"):
            return _MEMBER_ID.sub("-<random>", value)
        for theirs, name in self._texts.items():
            value = value.replace(theirs, name)
        value = value.removeprefix("requirement failed: ")  # Scala's, not Kafka's
        value = _ENDLESSLY_LONG_AGO.sub("<never>", value)
        return _TIMES.sub(lambda found: "<time>" if self._is_recent(int(found[0])) else found[0], value)

    def _of_number(self, field: str, value: int) -> Any:
        if field.endswith("error_code"):
            return ErrorCode(value).name
        if field == "port" and value == self._address[1]:
            return "<its port>"
        if field in _PRODUCER_IDS and value >= 0:
            return self._numbered("producer_id", value)
        if field == "session_id" and value > 0:
            return self._numbered(field, value)
        if field == "finalized_features_epoch" and value >= 0:
            return "<its epoch>"
        if field in ("total_bytes", "usable_bytes") and value > 0:
            return "<bytes>"
        if "timestamp" in field or field in ("log_append_time_ms", "transaction_start_time_ms"):
            return "<now>" if self._started_ms <= value < self._started_ms + DAY_MS / 48 else value
        return value

    def _numbered(self, field: str, value: int) -> str:
        found = self._numbers.get((field, value))
        if found is None:
            count = sum(key[0] == field for key in self._numbers) + 1
            found = self._numbers[field, value] = f"<{field} {count}>"
        return found

    def _is_recent(self, time_ms: int) -> bool:
        return abs(time_ms - self._started_ms) < 2 * DAY_MS


def tree(value: Any, names: Names, field: str = "") -> Any:
    """The message, struct, list or value in comparable form."""
    if isinstance(value, Struct):
        _learn(value, names)
        return {
            declared.name: tree(getattr(value, declared.name), names, declared.name)
            for declared in type(value).declared_fields
        } | ({"unknown_tags": value.unknown_tags} if value.unknown_tags else {})
    if isinstance(value, list):
        if field == "active_producers":
            value = sorted(value, key=lambda producer: producer.producer_id)
        items = [tree(item, names, field) for item in value]
        return items if field in ORDERED or not items or not isinstance(items[0], dict) else _by_key(items)
    if field == "records":
        return None if value is None else batches(bytes(value), names)
    return names.of(field, value)


def _learn(value: Struct, names: Names) -> None:
    """Takes note of a topic's id where a response tells it with the name."""
    topic_id = getattr(value, "topic_id", None)
    name = getattr(value, "name", None)
    if topic_id and topic_id != uuids.ZERO and name:
        names.topic(topic_id, name)


def _by_key(items: list[dict[str, Any]]) -> Any:
    found: dict[str, Any] = {}
    for item in items:
        name = _key(item)
        if name is None:
            return items
        group = found.setdefault(name, [])
        if not (group and _merged(group[-1], item)):
            group.append(item)
    return {name: group[0] if len(group) == 1 else sorted(group, key=repr) for name, group in found.items()}


def _key(item: dict[str, Any]) -> str | None:
    """What tells the item from the others of its list; None where it has no such field."""
    present = [fields for fields in KEYS if item.keys() >= set(fields)]
    if not present:
        return None
    telling = (fields for fields in present if all(item[field] not in (None, "", uuids.ZERO) for field in fields))
    return " ".join(str(item[field]) for field in next(telling, present[0]))


def _merged(known: dict[str, Any], item: dict[str, Any]) -> bool:
    """Adds a topic's partitions to those that the same topic has before, as far as they are others."""
    for field in ("partitions", "partition_responses"):
        mine, others = known.get(field), item.get(field)
        if isinstance(mine, dict) and isinstance(others, dict) and not mine.keys() & others.keys():
            mine |= others
            return True
    return False


def batches(blob: bytes, names: Names) -> list[Any]:
    """Each batch with its header and records; of the last one, where a part of it is missing, the bytes."""
    found: list[Any] = []
    at = 0
    while at + HEADER_SIZE <= len(blob):
        header = read_header(blob, at)
        batch = blob[at : at + header.size]
        if len(batch) < header.size or header.size < HEADER_SIZE:
            break
        told = {name: names.of(name, value) for name, value in header._asdict().items()}
        if header.attributes & 7:
            # Two implementations of a codec need not write the same bytes.
            del told["crc"], told["batch_length"]
        elif header.log_append_time or header.producer_id >= 0:  # each broker has its own clock and producer ids
            del told["crc"]
        if header.has_delete_horizon:  # so long after the cleaning
            told["base_timestamp"] = "<delete horizon>"
            told.pop("crc", None)
        found.append({**told, "records": _records(batch, names)})
        at += header.batch_length + LOG_OVERHEAD
    if at < len(blob):
        found.append(f"{len(blob) - at} bytes of a batch")
    return found


def _records(batch: bytes, names: Names) -> Any:
    try:
        return [
            record._replace(timestamp=names.of("timestamp", record.timestamp))._asdict()
            for record in iter_records(batch)
        ]
    except CorruptBatchError as error:
        return f"corrupt: {error}"


def differences(left: Any, right: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """(path, left value, right value) of everything that is not the same in two trees."""
    if isinstance(left, dict) and isinstance(right, dict):
        found = []
        for key in [*left, *(key for key in right if key not in left)]:
            inner = f"{path}.{key}" if path else str(key)
            found += differences(left.get(key, "<absent>"), right.get(key, "<absent>"), inner)
        return found
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [
            found
            for index, (one, other) in enumerate(zip(left, right, strict=True))
            for found in differences(one, other, f"{path}[{index}]")
        ]
    return [] if left == right and type(left) is type(right) else [(path, left, right)]
