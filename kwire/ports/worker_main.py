"""`python -m kwire.ports.worker_main`: a worker's process. `worker_processes` starts it and says what is spoken.

It ends at once when the process that started it has ended, however that came about: a thread waits for the end of
standard input. So nothing is written any more into a log dir that the next broker may have taken.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
import threading
import traceback
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO

_LENGTH = struct.Struct(">I")

_NICENESS = 5
"""How much the broker goes before: requests are waited for, a worker is not. With more it would be left with a tenth of
a core where all are busy, and might never catch up."""

_OUT_OF_MEMORY_SCORE = "500"
"""Where the system has no memory left it takes the worker, not the broker."""


def main() -> None:
    os.nice(_NICENESS)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(_OUT_OF_MEMORY_SCORE)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    messages: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, messages), daemon=True).start()
    target = None
    while True:
        function, arguments, named = pickle.loads(messages.get())
        try:
            if target is None:
                target, result = function(*arguments, **named), None
            else:
                result = function(target, *arguments, **named)
            answer = pickle.dumps((True, result), pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            answer = _failure(error)
        answers.write(_LENGTH.pack(len(answer)) + answer)
        answers.flush()


def _receive(source: BinaryIO, messages: SimpleQueue[bytes]) -> None:
    while True:
        head = source.read(_LENGTH.size)
        message = source.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
        if not message:
            os._exit(0)
        messages.put(message)


def _failure(error: Exception) -> bytes:
    told: Any = error
    told.add_note("".join(traceback.format_exception(error)))
    try:
        answer = pickle.dumps((False, told), pickle.HIGHEST_PROTOCOL)
        pickle.loads(answer)
        return answer
    except Exception:
        return pickle.dumps((False, RuntimeError(repr(error))), pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main()
