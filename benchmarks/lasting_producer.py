"""ProducerPerformance in a JVM that lives on from load to load, so that what it runs is compiled before the first that
counts: what a warm producer is. One in a JVM of its own has not come to that after half a million records."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Timer

from benchmarks.loads import LOAD_TIMEOUT, Produce, Sent
from jvm import apache_kafka, programs

_PROGRAM = Path(__file__).with_name("ManyPerformances.java")


class LastingProducer:
    """Started by its first load."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lasting-producer-")
        self._program: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    def run(self, load: Produce, bootstrap: str, topic: str) -> Sent:
        """As `Produce.run`. Raises RuntimeError with what it printed where the load fails; the next one runs all the
        same, if need be in a new JVM."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        output, done = "", False
        watch = Timer(LOAD_TIMEOUT, process.kill)
        watch.start()
        try:
            with suppress(BrokenPipeError):  # it has ended: its output says why
                print(*load.arguments(bootstrap, topic), sep="\t", file=process.stdin, flush=True)
            for line in process.stdout:
                if line == "end\n":
                    done = True
                    break
                output += line
        finally:
            late = watch.finished.is_set()
            watch.cancel()
            if not done:
                self._end()
        if not done:
            ended = f"took more than {LOAD_TIMEOUT} s" if late else f"ended with {process.returncode}"
            raise RuntimeError(f"ProducerPerformance {ended}: {output}")
        return load.reported(output)

    @property
    def pid(self) -> int | None:
        """The JVM's, while there is one."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """Ends the JVM."""
        self._end()
        self._folder.cleanup()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> subprocess.Popen[str]:
        if not self._program:
            folder = Path(self._folder.name)
            self._program = programs.command(
                [_PROGRAM], apache_kafka.class_path(), folder, options=apache_kafka.TOOL_HEAP
            )
        return subprocess.Popen(
            [*self._program, _PROGRAM.stem],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
