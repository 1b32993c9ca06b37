"""A Connect worker in a process of its own, and its REST interface."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.error import HTTPError, URLError

from jvm import apache_kafka, kafka_connect, maven

TIMEOUT = 120.0
"""Seconds for anything that must happen; a start takes a few, and so does the loss of a killed worker."""
POLL = 0.1
"""Seconds between two looks at what a condition depends on."""
COMMON = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.flush.interval.ms": 500,
    # The connectors are named in their jar; nothing else is searched for any.
    "plugin.discovery": "service_load",
}
FILES = "org.apache.kafka.connect.file.FileStream"
SOURCE, SINK = f"{FILES}SourceConnector", f"{FILES}SinkConnector"


class Worker:
    """ConnectStandalone or ConnectDistributed with these settings; leaving it as a context manager kills it.

    `connectors`: those that a stand-alone worker begins with.
    """

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        settings: Mapping[str, object],
        connectors: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        (port,) = apache_kafka.free_ports(1)
        self.id = f"127.0.0.1:{port}"
        """As other workers and the REST interface name it."""
        address = {"bootstrap.servers": bootstrap, "listeners": f"http://{self.id}"}
        self._folder = folder
        self._log = folder / f"worker-{port}.log"
        kind = "Distributed" if connectors is None else "Standalone"
        properties = [_properties(folder / f"worker-{port}", {**COMMON, **address, **_plugins(), **settings})]
        for name, config in (connectors or {}).items():
            properties.append(_properties(folder / name, {"name": name, **config}))
        options = ("-Xmx512m", *apache_kafka.SHORT_LIVED, maven.scratch_option(folder))
        self._command = apache_kafka.tool_command(
            f"org.apache.kafka.connect.cli.Connect{kind}", *map(str, properties), options=options
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns at once."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def until(self, check: Callable[[], bool], what: str) -> None:
        """Waits until the check holds; where the interface does not answer it does not."""
        deadline = time.monotonic() + TIMEOUT
        while not _holds(check):
            assert self._process is not None
            assert self._process.poll() is None, f"the worker ended:\n{self.log_tail()}"
            assert time.monotonic() < deadline, f"not in time: {what}\n{self.log_tail()}"
            time.sleep(POLL)

    def ask(self, path: str, body: object = None) -> Any:
        """GET, or POST of a body as JSON; raises URLError."""
        data = None if body is None else json.dumps(body, default=str).encode()
        request = urllib.request.Request(f"http://{self.id}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return json.loads(response.read())

    def create(self, name: str, config: Mapping[str, object]) -> None:
        """Creates a connector, as soon as the workers are ready to."""

        def create() -> bool:
            self.ask("/connectors", {"name": name, "config": config})
            return True

        self.until(create, f"{name} cannot be created")

    def task_runs_on(self, connector: str) -> str | None:
        """The id of the worker that runs the connector's only task."""
        tasks = self.ask(f"/connectors/{connector}/status")["tasks"]
        return next((task["worker_id"] for task in tasks if task["state"] == "RUNNING"), None)

    def stop(self) -> None:
        """SIGTERM, and waits for the end; where it does not come, what its threads do is told."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGQUIT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(5)  # it goes on, and writes meanwhile
            raise AssertionError(f"the worker does not end:\n{self.log_tail(100_000)}") from None

    def kill(self) -> None:
        """SIGKILL, where it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def log_tail(self, size: int = 5000) -> str:
        """The end of what it has logged, so many characters."""
        return self._log.read_text(errors="replace")[-size:]

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()


def _holds(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except HTTPError as error:
        # 409: the workers are sharing out their work. 404 and 500: what was created is not known everywhere yet.
        if error.code in (404, 409, 500):
            return False
        raise AssertionError(error.read().decode()) from error
    except (URLError, ConnectionError):
        return False


def _plugins() -> dict[str, object]:
    return {"plugin.path": kafka_connect.plugin_path()}


def _properties(file: Path, settings: Mapping[str, object]) -> Path:
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return file
