"""kcat as its users drive it: a command line, records on standard input, JSON on standard output."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from compat_tests.driver import TIMEOUT, Bounds, Driver, Reading, Received, Record, Refused, Sending
from kwire.protocol.errors import ErrorCode

KEY_MARK, END_MARK = "\x01", "\x02"
"""Between key and value and behind each record; no text contains them."""


class KcatDriver(Driver):
    """kcat takes and prints text, and stamps what it produces with its own clock."""

    def __init__(self, bootstrap: str, program: str) -> None:
        super().__init__(bootstrap)
        self._program = program

    def at(self, bootstrap: str) -> KcatDriver:
        return KcatDriver(bootstrap, self._program)

    def _produce(self, topic: str, records: Sequence[Record], how: Sending) -> list[int]:
        options = ["-z", how.compression, "-X", f"acks={how.acks}"]
        options += ["-X", f"message.timeout.ms={int(how.patience * 1000)}"]
        options += ["-X", f"enable.idempotence={str(how.idempotent).lower()}"]
        if how.largest is not None:
            options += ["-X", f"message.max.bytes={how.largest}"]
        offsets: list[int] = []
        # One run takes one set of headers and one partition for all that it produces.
        for (headers, partition), group in itertools.groupby(records, lambda r: (r.headers, r.partition)):
            marks = [mark for key, value in headers for mark in ("-H", f"{key}={(value or b'').decode()}")]
            where = ["-P", "-t", topic, "-p", str(partition)]
            offsets += self._produce_run([*where, *options, *marks], list(group))
        return offsets

    def _produce_run(self, arguments: list[str], records: list[Record]) -> list[int]:
        with tempfile.TemporaryDirectory() as folder:
            if len(records) == 1 and records[0].key is None and records[0].value:
                # A whole file is one message, whatever it contains.
                (Path(folder) / "message").write_bytes(records[0].value)
                arguments = [*arguments, str(Path(folder) / "message")]
                text = b""
            else:
                arguments = [*arguments, "-Z", "-K", KEY_MARK, "-D", END_MARK]
                text = b"".join(
                    b"%s%s%s%s" % (record.key or b"", KEY_MARK.encode(), record.value or b"", END_MARK.encode())
                    for record in records
                )
            log = self.run(*arguments, "-vvv", input=text).stderr
        return [int(offset) for offset in re.findall(r"delivered to partition \d+ \(offset (-?\d+)\)", log)]

    def _consume(self, topic: str, count: int, how: Reading) -> list[Received]:
        limits = [] if how.largest is None else ["-X", f"fetch.message.max.bytes={how.largest}"]
        options = [
            "-J",
            "-u",
            "-X",
            f"topic.auto.offset.reset={'error' if how.reset == 'none' else how.reset}",
            *limits,
        ]
        if len(how.starts) == 1:
            ((partition, offset),) = how.starts.items()
            where = ["-p", str(partition), "-o", str(offset)]
        elif set(how.starts.values()) == {0}:
            where = ["-o", "beginning"]
        else:
            raise ValueError("kcat starts at one offset in one partition, or at the beginning of all")
        lines = self.run("-C", "-t", topic, *where, "-c", str(count), *options, timeout=how.timeout).stdout.splitlines()
        return [_received(json.loads(line)) for line in lines]

    def bounds(self, topic: str, partition: int = 0) -> Bounds:
        begin, end = self._query(topic, -2, partition), self._query(topic, -1, partition)
        return Bounds(begin, end)

    def offset_at(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        offset = self._query(topic, timestamp, partition)
        return None if offset < 0 else offset

    def partition_count(self, topic: str) -> int:
        """By -L; 0 where there is no such topic."""
        listing = json.loads(self.run("-L", "-J", "-t", topic).stdout)
        return sum(len(entry["partitions"]) for entry in listing["topics"] if entry["topic"] == topic)

    def _query(self, topic: str, timestamp: int, partition: int) -> int:
        answer = self.run("-Q", "-t", f"{topic}:{partition}:{timestamp}").stdout
        found = re.search(rf"\[{partition}\] offset (-?\d+)", answer)
        assert found, f"kcat -Q printed {answer!r}"
        return int(found[1])

    def run(self, *arguments: str, input: bytes = b"", timeout: float = TIMEOUT) -> subprocess.CompletedProcess[str]:
        """Runs kcat; raises Refused where it ends with an error that names one of Kafka's."""
        done = subprocess.run(
            [self._program, "-b", self.bootstrap, *arguments], input=input, capture_output=True, timeout=timeout
        )
        errors = done.stderr.decode(errors="replace")
        if done.returncode:
            raise Refused(_code(errors), errors)
        return subprocess.CompletedProcess(done.args, 0, done.stdout.decode(), errors)

    def start(self, *arguments: str, output: IO[bytes]) -> subprocess.Popen[bytes]:
        """Starts kcat and leaves it running; what it prints goes to a file."""
        return subprocess.Popen([self._program, "-b", self.bootstrap, *arguments], stdout=output)


MESSAGES = {
    "Message size too large": ErrorCode.MESSAGE_TOO_LARGE,
    "Unknown topic or partition": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    "Unknown topic": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    "Unknown partition": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    "Offset out of range": ErrorCode.OFFSET_OUT_OF_RANGE,
    "Message timed out": ErrorCode.REQUEST_TIMED_OUT,
}


def _code(errors: str) -> ErrorCode:
    for message, code in MESSAGES.items():
        if message in errors:
            return code
    raise AssertionError(f"kcat failed: {errors}")


def _received(line: dict) -> Received:
    names, values = line.get("headers", [])[::2], line.get("headers", [])[1::2]
    return Received(
        key=_bytes(line.get("key")),
        value=_bytes(line.get("payload")),
        headers=tuple((name, _bytes(value)) for name, value in zip(names, values, strict=True)),
        timestamp=line["ts"],
        partition=line["partition"],
        offset=line["offset"],
        log_append_time=line["tstype"] == "logappend",
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
