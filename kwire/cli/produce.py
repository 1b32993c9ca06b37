"""`kwire produce`: records from standard input or files to a topic."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.commands import Argument, Command
from kwire.cli.options import PARTITION, cluster_options, open_client, read_option
from kwire.cli.running import MISUSED, CommandError, run_async

if TYPE_CHECKING:
    from kwire.client.producer import Producer
    from kwire.protocol.records.compression import Compression

READ_BYTES = 256 * 1024

LARGEST_RECORD = 256 * 1024 * 1024
"""Bytes: what has no end or no delimiter must not fill the memory. Brokers take far less unless told otherwise."""

ACKS = {"0": 0, "1": 1, "all": -1, "-1": -1}


@click.command("produce", cls=Command)
@click.argument("topic", cls=Argument, metavar="TOPIC", description="The topic to write to.")
@click.argument(
    "files", cls=Argument, metavar="FILE", description="Files to read instead of standard input (-).", nargs=-1
)
@click.option("--delimiter", "-D", metavar="TEXT", default=r"\n", help="What ends a record.")
@click.option("--whole", "-w", is_flag=True, help="Each file is one record.")
@click.option("--key-delimiter", "-K", metavar="TEXT", help="What separates key and value.")
@click.option("--key", "-k", metavar="TEXT", help="The key of every record.")
@click.option(
    "--header",
    "-H",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header of every record; may be repeated.",
)
@click.option("--null", "-Z", is_flag=True, help="An empty value or key is null.")
@click.option("--timestamp", metavar="TIME", show_default="now", help="ms since the epoch or 2026-01-31T12:00.")
@click.option(
    "--partition",
    "-p",
    type=PARTITION,
    metavar="N",
    show_default="by the key, else any",
    help="The partition.",
)
@click.option("--compression", "-z", metavar="CODEC", default="none", help="none, gzip, snappy, lz4 or zstd.")
@click.option("--acks", metavar="N", default="all", help="Replicas to wait for: 0, 1 or all.")
@click.option("--idempotent", is_flag=True, help="A retry never stores a record twice.")
@cluster_options
def produce(
    topic: str,
    files: tuple[str, ...],
    delimiter: str,
    whole: bool,
    key_delimiter: str | None,
    key: str | None,
    headers: tuple[str, ...],
    null: bool,
    timestamp: str | None,
    partition: int | None,
    compression: str,
    acks: str,
    idempotent: bool,
    bootstrap: str,
    timeout: float,
) -> None:
    """Writes lines to a topic.

    Each line of standard input, or of the files, becomes a record.
    """
    from kwire.cli.formats import unescape
    from kwire.cli.positions import parse_time
    from kwire.client.producer import Producer

    end = read_option("--delimiter", delimiter, unescape)
    separator = None if key_delimiter is None else read_option("--key-delimiter", key_delimiter, unescape)
    time = None if timestamp is None else read_option("--timestamp", timestamp, parse_time)
    if not end or separator == b"":
        raise CommandError("a delimiter must not be empty (one record of a file: --whole)", MISUSED)
    if acks not in ACKS:
        raise CommandError(f"--acks {acks}: must be 0, 1 or all", MISUSED)
    if idempotent and ACKS[acks] != -1:
        raise CommandError("--idempotent needs --acks all", MISUSED)
    if whole and not files:
        raise CommandError("--whole needs a FILE", MISUSED)
    codec = _codec(compression)
    parsed_headers = _headers(headers)
    fixed_key = None if key is None else os.fsencode(key)

    async def send(producer: Producer, line: bytes) -> None:
        record_key, value = fixed_key, line
        if separator is not None:
            front, found, back = line.partition(separator)
            if found:
                record_key, value = front, back
        await producer.send(
            topic,
            None if null and not value else value,
            key=None if null and not record_key else record_key,
            headers=parsed_headers,
            timestamp=time,
            partition=partition,
        )

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            await client.topic(topic, create=True)
            producer = Producer(client, acks=ACKS[acks], compression=codec, idempotent=idempotent, timeout=timeout)
            for name in files or ["-"]:
                with _opened(name) as source:
                    async for lines in _whole(source) if whole else _lines(source, end):
                        for line in lines:
                            await send(producer, line)
                        await producer.flush()

    run_async(main)


def _opened(name: str) -> Any:
    """A context manager for the file of that name, or for standard input (-), which stays open."""
    from kwire.ports.input import open_input

    if name != "-":
        return closing(open_input(name))
    if sys.stdin is None:
        raise CommandError("standard input is closed: name a FILE to read")
    return nullcontext(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))


async def _lines(source: Any, end: bytes) -> AsyncIterator[list[bytes]]:
    """The records of a source as they come; the last one needs no delimiter."""
    rest = bytearray()
    while data := await _read(source):
        searched = max(0, len(rest) - len(end) + 1)
        rest += data
        if rest.find(end, searched) >= 0:
            *lines, last = bytes(rest).split(end)
            rest = bytearray(last)
            yield lines
        _check_size(rest)
    if rest:
        yield [bytes(rest)]


async def _whole(source: Any) -> AsyncIterator[list[bytes]]:
    """All of a source as one record."""
    content = bytearray()
    while data := await _read(source):
        content += data
        _check_size(content)
    yield [bytes(content)]


def _check_size(record: bytearray) -> None:
    if len(record) > LARGEST_RECORD:
        raise CommandError(f"a record of more than {LARGEST_RECORD >> 20} MiB: is it the right --delimiter?")


async def _read(source: Any) -> bytes:
    """What there is next, at its end nothing."""
    import trio

    while True:
        data: bytes | None = await trio.to_thread.run_sync(source.read, READ_BYTES, abandon_on_cancel=True)
        if data is not None:
            return data
        await trio.lowlevel.wait_readable(source)  # who shares the input has made it non-blocking


def _codec(name: str) -> Compression:
    from kwire.protocol.records.compression import Compression

    try:
        return Compression[name.upper()]
    except KeyError:
        names = ", ".join(codec.name.lower() for codec in Compression)
        raise CommandError(f"--compression {name}: must be one of {names}", MISUSED) from None


def _headers(texts: Iterable[str]) -> list[tuple[str, bytes | None]]:
    headers: list[tuple[str, bytes | None]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name:
            raise CommandError(f"--header {text}: must be NAME=VALUE (NAME alone: a null value)", MISUSED)
        if any("\ud800" <= character <= "\udfff" for character in name):  # bytes that are no text
            raise CommandError(f"--header {text}: NAME must be UTF-8", MISUSED)
        headers.append((name, os.fsencode(value) if equals else None))
    return headers
