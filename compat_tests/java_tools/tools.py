"""The stock command line tools of Apache Kafka, driven from Python: `JavaTools.run("TopicCommand", "--list")`.

A JVM takes a second or two to start, so all tools run in one: see ToolRunner.java.
"""

from __future__ import annotations

import json
import select
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from jvm import apache_kafka, maven

RUNNER = Path(__file__).with_name("ToolRunner.java")
PACKAGES = {
    "ConfigCommand": "kafka.admin",
    "ConsoleConsumer": "org.apache.kafka.tools.consumer",
    "ConsumerGroupCommand": "org.apache.kafka.tools.consumer.group",
    "ReassignPartitionsCommand": "org.apache.kafka.tools.reassign",
}
"""Packages of the tools that are not in org.apache.kafka.tools."""
RELOADED = ("kafka-tools-", "kafka_2.13-")
"""Jars whose classes every run loads anew."""
TIMEOUT = 120.0
"""Seconds that a tool may take; each takes a few at the most."""


class ToolResult(NamedTuple):
    """What a tool left behind."""

    exit_code: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        """The lines of the standard output."""
        return self.output.splitlines()


class ToolError(Exception):
    """A tool ended with another exit code than expected, or did not end."""


class JavaTools:
    """The tools, all talking to the broker at `bootstrap`. The JVM starts with the first run and ends with `close`."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="java-tools-"))
        self._errors = (self._folder / "errors").open("w+b")

    def run(
        self, tool: str, *arguments: str, input: str = "", bootstrap: bool = True, exit_code: int = 0
    ) -> ToolResult:
        """Runs the tool with these arguments, `--bootstrap-server` before them unless `bootstrap` is false.

        Raises ToolError, with all that the tool wrote, when its exit code is not `exit_code`.
        """
        words = [*(["--bootstrap-server", self.bootstrap] if bootstrap else []), *arguments]
        main = f"{PACKAGES.get(tool, 'org.apache.kafka.tools')}.{tool}"
        answer = self._call({"main": main, "arguments": words, "input": input})
        result = ToolResult(answer["exit"], answer["output"], answer["errors"])
        if result.exit_code != exit_code:
            raise ToolError(f"{tool} {' '.join(words)}: exit code {result.exit_code}\n{result.output}\n{result.errors}")
        return result

    def close(self) -> None:
        """Ends the JVM and removes its temporary files."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        self._errors.close()
        shutil.rmtree(self._folder)

    def _call(self, request: dict[str, object]) -> dict:
        if self._process is None:
            self._process = self._start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        # An answer is written whole, so the first byte of it says that the rest comes.
        readable, _, _ = select.select([process.stdout], [], [], TIMEOUT)
        line = process.stdout.readline() if readable else b""
        if not line:
            process.kill()
            process.communicate()
            self._process = None
            self._errors.seek(0)
            errors = self._errors.read().decode(errors="replace")
            raise ToolError(f"{request['main']} {'ended the JVM' if readable else 'did not end'}:\n{errors}")
        return json.loads(line)

    def _start(self) -> subprocess.Popen[bytes]:
        folder = maven.jars(apache_kafka.POM)
        jars = sorted(folder.glob("*.jar"))
        reloaded = [str(jar) for jar in jars if jar.name.startswith(RELOADED)]
        class_path = ":".join(str(jar) for jar in jars if not jar.name.startswith(RELOADED))
        command = [maven.java_program("java"), "-Xmx768m", *apache_kafka.SHORT_LIVED, *apache_kafka.QUIET]
        command += [maven.scratch_option(self._folder), "-cp", class_path, str(RUNNER), *reloaded]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
