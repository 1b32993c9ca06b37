"""Whether work in a worker thread lets others have the interpreter's lock."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable


def turns_during(work: Callable[[], object]) -> int:
    """How often another thread gets the lock while the work is done.

    Compiled, a loop that calls only what is compiled, too, keeps it to its end.
    """
    working = threading.Thread(target=work)
    turns = 0
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    try:
        working.start()
        while working.is_alive():
            turns += 1
            working.join(0.0001)  # lets go of the lock, and has to get it again
    finally:
        sys.setswitchinterval(interval)
    return turns
