"""How a command runs and how it ends: one line about what went wrong and what to do, and an exit code.

0 done, 1 it could not be done (or nobody reads the output), 2 wrong use or configuration, 130 stopped by Ctrl-C, 143
and 129 by SIGTERM and SIGHUP.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

FAILED = 1
MISUSED = 2
INTERRUPTED = 130


class CommandError(Exception):
    """A command's own complaint, one line; `code` is the exit code."""

    def __init__(self, text: str, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code


def run_async(main: Callable[[], Awaitable[None]]) -> None:
    """Runs it in Trio. What it raises comes out as it is, not in a group."""
    import trio

    try:
        trio.run(main)
    except BaseExceptionGroup as group:
        raise _most_telling(group) from None


def guarded(command: Callable[[], Any]) -> int:
    """Runs a command; its exit code. Failures are told on standard error; what is a bug of kwire's is raised."""
    _make_output_tolerant()
    try:
        returned = command()
        sys.stdout.flush()
        code = returned if isinstance(returned, int) else 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = FAILED
    except Exception as error:
        told = _told(error)
        if told is None:
            raise
        text, code = told
        if text:
            print(f"kwire: {text}", file=sys.stderr)
    _settle_output()
    return code


def _make_output_tolerant() -> None:
    """Lets what the terminal's encoding lacks, and names of files that are no text, be shown as escapes.

    What is written to a closed standard output goes nowhere.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _settle_output() -> None:
    """Writes what is left of the output. Where it can't be written, nothing will try to at exit either."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def _most_telling(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one exception to tell: Ctrl-C before all others, else the first."""
    interrupts, others = group.split(KeyboardInterrupt)
    leaf: BaseException = interrupts or others or group
    while isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf


def _told(error: Exception) -> tuple[str, int] | None:
    """What to say of an exception, and the exit code; None where it is none that a user can do something about."""
    from kwire.config.errors import ConfigError

    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, ConfigError):
        return str(error), MISUSED
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}", FAILED
    if hasattr(error, "format_message"):  # wrong use, as Click finds it
        return _misuse(error), getattr(error, "exit_code", MISUSED)
    return _told_of_cluster(error)


def _misuse(error: Any) -> str:
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(context.get_help(), file=sys.stderr)
        return ""
    text = error.format_message().replace("\n", " ").rstrip(".")
    path = context.command_path if context is not None else "kwire"
    return f"{text} (see {path} --help)"


def _told_of_cluster(error: Exception) -> tuple[str, int] | None:
    from kwire.client.errors import AdvertisedAddressUnreachable, BrokerUnreachable, ClientError, ConnectionLost
    from kwire.protocol.codec.errors import EncodeError
    from kwire.protocol.errors import KafkaError

    if isinstance(error, EncodeError):  # a name that is too long, or not UTF-8
        return f"no request can say this: {error}", MISUSED
    if isinstance(error, BrokerUnreachable) and not isinstance(error, AdvertisedAddressUnreachable):
        return f"no Kafka broker at {error} (is it running? name another with --bootstrap HOST:PORT)", FAILED
    if type(error) is ConnectionLost:  # so does a broker that finds a request too large
        return f"{error} (where that happens again, the broker's log says why)", FAILED
    if isinstance(error, ClientError):
        return str(error), FAILED
    if isinstance(error, KafkaError):
        hint = _HINTS.get(error.code.name)
        return f"{error} ({hint})" if hint else str(error), FAILED
    return None


_HINTS = {
    "UNKNOWN_TOPIC_OR_PARTITION": "not there: `kwire topics list` shows what is, `kwire topics create` makes it",
    "INVALID_TOPIC_EXCEPTION": "a name has letters, digits, '.', '_' and '-', 249 at most",
    "TOPIC_ALREADY_EXISTS": "--if-not-exists makes that no error",
    "OFFSET_OUT_OF_RANGE": "`kwire topics describe --offsets` shows which offsets there are",
    "MESSAGE_TOO_LARGE": "the topic's max.message.bytes is the limit",
    "GROUP_ID_NOT_FOUND": "not there: `kwire groups list` shows what is",
    "NON_EMPTY_GROUP": "its members have to leave first",
    "NOT_ENOUGH_REPLICAS": "fewer replicas are in sync than the topic's min.insync.replicas",
}
