"""ProducerPerformance in a JVM that lives on from load to load, so that what it runs is compiled before the first that
counts: what a warm producer is. One in a JVM of its own has not come to that after half a million records."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from threading import Timer

from benchmarks.loads import LOAD_TIMEOUT, Produce
from jvm import apache_kafka, programs

_PROGRAM = Path(__file__).with_name("ManyPerformances.java")


class LastingProducer:
    """Started by its first load."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lasting-producer-")
        self._program: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    def run(self, load: Produce, bootstrap: str, topic: str) -> float:
        """As `Produce.run`. Raises RuntimeError with what it printed where the load fails, which ends the JVM."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        print(*load.arguments(bootstrap, topic), sep="\t", file=process.stdin, flush=True)
        output = ""
        watch = Timer(LOAD_TIMEOUT, process.kill)
        watch.start()
        try:
            for line in process.stdout:
                if line == "end\n":
                    return load.reported(output)
                output += line
        finally:
            watch.cancel()
        self._process = None
        raise RuntimeError(f"ProducerPerformance ended with {process.wait()}: {output}")

    @property
    def pid(self) -> int | None:
        """The JVM's, while there is one."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """Ends the JVM."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        self._folder.cleanup()

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
        )
