"""The options of `kwire serve`, once: Click's command is made from this table, and so is the short way in.

A broker shall be there in a fraction of a second, and importing Click takes a part of that. So `parse_plainly`
reads the arguments itself where they are plain (known options with values, nothing that wants help or a message), and
gives up on everything else, which then goes Click's way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class ServeOption(NamedTuple):
    """`name` is the parameter of `serve`; the flag is the same with hyphens."""

    name: str
    metavar: str
    repeated: bool
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


LOG_LEVELS = ("debug", "info", "warning", "error")
DEFAULT_LOG_LEVEL = "warning"

PROPERTIES = "properties"
PROPERTIES_HELP = "A server.properties file with Kafka's own keys."

OPTIONS = (
    ServeOption("listen", "HOST:PORT", False, "Where to listen; port 0 takes a free one. Sets listeners."),
    ServeOption("data_dir", "DIR", True, "Where to keep the logs; may be given several times. Sets log.dirs."),
    ServeOption("set", "KEY=VALUE", True, "Any configuration key; may be given several times."),
    ServeOption("log_level", "LEVEL", False, f"What to log: {', '.join(LOG_LEVELS)}."),
)

_BY_FLAG = {option.flag: option for option in OPTIONS}


def parse_plainly(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The keyword arguments for `serve`, or None where the arguments are not plain enough to be read here."""
    found: dict[str, Any] = {}
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        position += 1
        if not argument.startswith("-"):
            if not argument or PROPERTIES in found:
                return None
            found[PROPERTIES] = argument
            continue
        flag, equals, value = argument.partition("=")
        option = _BY_FLAG.get(flag)
        if option is None:
            return None
        if not equals:
            if position == len(arguments):
                return None
            value = arguments[position]
            position += 1
        if not value or value.startswith("-"):
            return None
        if option.repeated:
            found[option.name] = (*found.get(option.name, ()), value)
        elif option.name in found:
            return None
        else:
            found[option.name] = value
    return found
