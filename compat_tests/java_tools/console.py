"""ConsoleProducer and ConsoleConsumer, with the options that make whole records visible."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from compat_tests.java_tools.tools import JavaTools

NULL = "NULL"
"""Stands for null, in what the producer reads and in what the consumer prints."""
WAIT_MS = 30_000
"""How long the consumer waits for a message that must come."""


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


def json_objects(text: str) -> Iterator[Any]:
    """What the formatters of internal topics print: one object after the other, with nothing between."""
    decoder = json.JSONDecoder()
    while text:
        entry, end = decoder.raw_decode(text)
        text = text[end:]
        yield entry


def _parse(line: str) -> Line:
    timestamp, partition, offset, headers, key, value = line.split("|", 5)
    return Line(timestamp, int(partition.partition(":")[2]), int(offset.partition(":")[2]), headers, key, value)
