"""`kwire produce`: records from standard input or files to a topic."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

import click

from kwire.cli.commands import Argument, Command
from kwire.cli.options import cluster_options, open_client
from kwire.cli.running import MISUSED, CommandError, run_async

if TYPE_CHECKING:
    from kwire.client.producer import Producer
    from kwire.protocol.records.compression import Compression

READ_BYTES = 256 * 1024

ACKS = {"0": 0, "1": 1, "all": -1, "-1": -1}


@click.command("produce", cls=Command)
@click.argument("topic", cls=Argument, metavar="TOPIC", description="The topic to write to.")
@click.argument("files", cls=Argument, metavar="FILE", description="Files to read instead of standard input.", nargs=-1)
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
    type=click.IntRange(min=0),
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

    try:
        end, separator = unescape(delimiter), None if key_delimiter is None else unescape(key_delimiter)
        time = None if timestamp is None else parse_time(timestamp)
    except ValueError as error:
        raise CommandError(str(error), MISUSED) from None
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
    fixed_key = None if key is None else key.encode()

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
            sources: list[str | None] = [*files] or [None]
            for name in sources:
                if whole and name is not None:
                    await send(producer, _read_file(name))
                else:
                    async for lines in _lines(name, end):
                        for line in lines:
                            await send(producer, line)
                        await producer.flush()
            await producer.flush()

    run_async(main)


async def _lines(name: str | None, end: bytes) -> AsyncIterator[list[bytes]]:
    """The records of a file (None: standard input) as they come; the last one needs no delimiter."""
    import trio

    source = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer) if name is None else _Reader(name)
    rest = b""
    while True:
        data = await trio.to_thread.run_sync(source.read, READ_BYTES, abandon_on_cancel=True)
        if not data:
            break
        *lines, rest = (rest + data).split(end)
        if lines:
            yield lines
    if rest:
        yield [rest]


class _Reader:
    """A file read from its beginning to its end."""

    def __init__(self, name: str) -> None:
        from kwire.ports.real_files import PosixFileSystem

        self._file = PosixFileSystem().open(name)
        self._position = 0

    def read(self, size: int) -> bytes:
        data = self._file.pread(size, self._position)
        self._position += len(data)
        return data


def _read_file(name: str) -> bytes:
    from kwire.ports.real_files import PosixFileSystem

    return PosixFileSystem().read(name)


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
        headers.append((name, value.encode() if equals else None))
    return headers
