"""Small volumes of their own for the tests: a tmpfs in a mount namespace that nobody else sees.

The namespace lives as long as a shell in it. Others reach the volume by the shell's /proc/PID/root, so that a broker
that is started, killed and started again finds its files. It needs no root: in a user namespace everybody may mount.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType


class Volume:
    """A tmpfs of so many bytes, until it is closed."""

    def __init__(self, size: int) -> None:
        self._mount = tempfile.mkdtemp(prefix="volume-")
        self._shell = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._run(f"mount -t tmpfs -o size={size} volume {shlex.quote(self._mount)}")
        self.path = Path(f"/proc/{self._shell.pid}/root{self._mount}")

    def resize(self, size: int) -> None:
        self._run(f"mount -o remount,size={size} {shlex.quote(self._mount)}")

    def make_read_only(self) -> None:
        """Nobody may have a file open for writing."""
        self._run(f"mount -o remount,ro {shlex.quote(self._mount)}")

    def make_writable(self) -> None:
        self._run(f"mount -o remount,rw {shlex.quote(self._mount)}")

    def close(self) -> None:
        """The volume is gone with all that is in it."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.close()
        self._shell.wait()
        self._shell.stdout.close()
        Path(self._mount).rmdir()

    def _run(self, command: str) -> None:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{command}; echo $?\n")
        self._shell.stdin.flush()
        if self._shell.stdout.readline().strip() != "0":
            raise OSError(f"{command} failed")

    def __enter__(self) -> Volume:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
