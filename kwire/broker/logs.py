"""The broker's own log output: one line an event, `time level room message key=value ...`, to standard error."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")


class _OneLine(logging.Formatter):
    """A traceback follows its event's line, indented, so that every other line is an event."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).split("\n")
        return "\n    ".join(lines)


def configure(level: str, stream: TextIO | None = None) -> None:
    """Sends events of `level` (one of LEVELS) and above to `stream`, standard error by default."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger("kwire")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
