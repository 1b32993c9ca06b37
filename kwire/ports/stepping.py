"""Whether a thread runs a coroutine without a task just now (`at_once`).

A module of its own: a class of thread-local values can't be compiled, what uses it is.
"""

from __future__ import annotations

import threading
from typing import Final


class _Here(threading.local):
    stepping = False


HERE: Final = _Here()
"""Of the thread that asks."""
