"""ConsoleProducer and ConsoleConsumer: whole records, values for a group, and what coordinators write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from compat_tests.java_tools.tools import JavaTools

NULL = "NULL"
"""Stands for null, in what the producer reads and in what the consumer prints."""
WAIT_MS = 30_000
"""How long the consumer waits for a message that must come."""
INTERNAL_PARTITIONS = 50
"""Of __consumer_offsets and __transaction_state."""


class Line(NamedTuple):
    """A record as the console consumer prints it."""

    timestamp: str
    partition: int
    offset: int
    headers: str
    key: str
    value: str


def produce(tools: JavaTools, topic: str, lines: Iterable[str], *arguments: str, whole_records: bool = True) -> str:
    """Sends each line, taken apart as HEADERS|KEY|VALUE unless `whole_records` is false.

    Returns what the producer complained about.
    """
    readers = {"parse.headers": "true", "parse.key": "true", "headers.delimiter": "|", "key.separator": "|"}
    options = [] if not whole_records else [f"{name}={value}" for name, value in readers.items()]
    options = [word for option in [*options, f"null.marker={NULL}"] for word in ("--reader-property", option)]
    text = "".join(f"{line}\n" for line in lines)
    # The tool's own default for this time-out is 1.5 s, which a busy machine may exceed.
    options += ["--request-timeout-ms", str(WAIT_MS)]
    return tools.run("ConsoleProducer", "--topic", topic, *options, *arguments, input=text).errors


def consume(
    tools: JavaTools, topic: str, count: int, *arguments: str, partition: int = 0, offset: str = "earliest"
) -> list[Line]:
    """The next `count` records from there on."""
    printed = ["timestamp", "partition", "offset", "headers", "key", "value"]
    properties = [*(f"print.{name}=true" for name in printed), "key.separator=|", f"null.literal={NULL}"]
    options = [word for option in properties for word in ("--formatter-property", option)]
    place = ["--partition", str(partition), "--offset", offset]
    bounds = ["--max-messages", str(count), "--timeout-ms", str(WAIT_MS)]
    result = tools.run("ConsoleConsumer", "--topic", topic, *place, *bounds, *options, *arguments)
    return [_parse(line) for line in result.lines]


def consume_in_group(tools: JavaTools, topic: str, group: str, count: int, *, protocol: str = "classic") -> list[str]:
    """The next values for the group, from the beginning where it has none committed."""
    words = ["--topic", topic, "--group", group, "--from-beginning", "--max-messages", str(count)]
    words += ["--command-property", f"group.protocol={protocol}", "--timeout-ms", str(WAIT_MS)]
    return tools.run("ConsoleConsumer", *words).lines


def coordinators_records(tools: JavaTools, topic: str, owner: str, formatter: str) -> list[dict[str, Any]]:
    """What a formatter makes of the partition of an internal topic that a group or transactional id belongs to.

    {"key": ..., "value": ...} for each record, in their order, as far as they come within seconds.
    """
    place = ["--topic", topic, "--partition", str(abs(_java_hash(owner)) % INTERNAL_PARTITIONS), "--offset", "earliest"]
    name = f"org.apache.kafka.tools.consumer.{formatter}"
    return list(_json_objects(tools.run("ConsoleConsumer", *place, "--timeout-ms", "3000", "--formatter", name).output))


def _java_hash(text: str) -> int:
    """`String.hashCode`, by whose absolute value Kafka finds the partition of a group or transactional id."""
    code = 0
    for character in text:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return code - (1 << 32) if code & 0x80000000 else code


def _json_objects(text: str) -> Iterator[Any]:
    """One object after the other, with nothing between."""
    decoder = json.JSONDecoder()
    while text:
        entry, end = decoder.raw_decode(text)
        text = text[end:]
        yield entry


def _parse(line: str) -> Line:
    timestamp, partition, offset, headers, key, value = line.split("|", 5)
    return Line(timestamp, int(partition.partition(":")[2]), int(offset.partition(":")[2]), headers, key, value)
