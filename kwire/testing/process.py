"""A kwire broker in a process of its own, with temporary data unless told otherwise."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

READY = re.compile(r"kwire ready on (\S+):(\d+)")
START_TIMEOUT = 30.0
"""Seconds; a start takes well under one, so this only bounds the wait for a broker that hangs."""
STOP_TIMEOUT = 30.0
"""Seconds; a clean stop takes five at the most, on a machine that is not overloaded."""


class BrokerError(Exception):
    """The broker did not start, or did not stop; the message ends with the last lines of its log."""


class BrokerProcess:
    """One `kwire serve`, started by `start` or by entering it as a context manager, ended by `close`.

    `config` holds broker settings by Kafka's names; they go on the command line, so they win over everything else.
    KWIRE_… variables of the surrounding environment are not passed on: only those in `environment` are. Unless `config`
    has `listeners`, the broker listens on `listen`, by default a free port of the loopback interface, and keeps that
    port over `restart`. Data go to `data_dir`, which stays, or else to a temporary folder, which `close` removes.

    `str(broker)` is its bootstrap address.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        data_dir: Path | str | None = None,
        listen: str = "127.0.0.1:0",
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.config = dict(config or {})
        self.host = ""
        self.port = 0
        self._listen = listen
        self._environment = dict(environment or {})
        self._arguments = tuple(arguments)
        self._folder = Path(tempfile.mkdtemp(prefix="kwire-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize | None = None
        self.data_dir = Path(data_dir) if data_dir is not None else self._folder / "data"
        self.log = self._folder / "broker.log"
        """What the broker wrote to standard error, over all its starts."""

    @property
    def bootstrap(self) -> str:
        """HOST:PORT, as clients take it in `bootstrap.servers`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The id of the running process, or of the last one."""
        return self._started().pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """As in subprocess: minus the signal's number where a signal ended it; None while it runs."""
        return None if self._process is None else self._process.poll()

    def command(self) -> list[str]:
        """The command line of the next start."""
        command = [sys.executable, "-m", "kwire", "serve", "--data-dir", str(self.data_dir)]
        if "listeners" not in self.config:
            command += ["--listen", self.bootstrap if self.port else self._listen]
        for key, value in self.config.items():
            command += ["--set", f"{key}={setting_text(value)}"]
        return [*command, *self._arguments]

    def start(self, timeout: float = START_TIMEOUT) -> BrokerProcess:
        """Returns when the broker accepts connections; raises BrokerError where it ends first or takes too long."""
        if self.running:
            raise BrokerError(f"the broker already runs on {self.bootstrap}")
        self._folder.mkdir(exist_ok=True)
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("KWIRE_")}
        with self.log.open("ab") as log:
            # In a process group of its own, so that Ctrl-C reaches the tests alone, whose teardown stops the broker.
            process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=inherited | self._environment,
                process_group=0,
            )
        self._process = process
        self._finalizer = weakref.finalize(self, process.kill)
        line = _first_line(process, time.monotonic() + timeout)
        ready = READY.match(line)
        if ready is None:
            raise BrokerError(f"kwire did not start: {self._give_up(line, timeout)}\n{self.log_tail()}")
        self.host, self.port = ready[1].strip("[]"), int(ready[2])
        return self

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Stops the broker cleanly (SIGTERM); kills it and raises BrokerError where that takes over `timeout` s."""
        if self.running:
            self._started().send_signal(signal.SIGTERM)
        if self._process is not None:
            self.wait(timeout)

    def wait(self, timeout: float = STOP_TIMEOUT) -> None:
        """Waits until the broker ends; kills it and raises BrokerError where that takes over `timeout` seconds."""
        try:
            self._started().wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerError(f"kwire did not stop within {timeout} s\n{self.log_tail()}") from None
        self._release()

    def kill(self) -> None:
        """Ends the broker as a power cut would (SIGKILL), except that the page cache survives."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._release()

    def restart(self) -> None:
        """Starts the broker again on the same data and address, stopping it cleanly before where it runs."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stops the broker and removes its temporary folder, log included."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def log_tail(self, lines: int = 60) -> str:
        """The last lines of the log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BrokerError("the broker was never started")
        return self._process

    def _give_up(self, line: str, timeout: float) -> str:
        """Ends a process that is not ready; says what it did instead."""
        if line:
            did = f"it said {line.strip()!r}"
        else:
            # The end of its output comes a moment before its own.
            try:
                did = f"it ended with exit code {self._started().wait(min(timeout, 5.0))}"
            except subprocess.TimeoutExpired:
                did = f"it said nothing for {timeout} s"
        self.kill()
        return did

    def _release(self) -> None:
        stdout = self._started().stdout
        if stdout is not None:
            stdout.close()
        if self._finalizer is not None:
            self._finalizer.detach()

    def __enter__(self) -> BrokerProcess:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __str__(self) -> str:
        return self.bootstrap

    def __repr__(self) -> str:
        state = f"on {self.bootstrap}" if self.running else "not running"
        return f"<{type(self).__name__} {state}, data in {self.data_dir}>"


def setting_text(value: object) -> str:
    """A setting's value as a properties file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first_line(process: subprocess.Popen[bytes], deadline: float) -> str:
    """The first line on standard output, or what came of it before the end of the output or the deadline."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(process.stdout.fileno(), 1) if ready else b""
        if not chunk:
            break
        line += chunk
    return line.decode(errors="replace")
