"""All ports together, as a broker is given them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwire.ports.clock import Clock
from kwire.ports.executor import Executor
from kwire.ports.files import FileSystem
from kwire.ports.randomness import Randomness
from kwire.ports.transport import Transport
from kwire.ports.workers import Workers


class Ports(NamedTuple):
    """The outside world of one broker."""

    clock: Clock
    randomness: Randomness
    executor: Executor
    workers: Workers
    transport: Transport
    files: FileSystem
    host_name: Callable[[], str]
    """This machine's name, as clients elsewhere know it."""
