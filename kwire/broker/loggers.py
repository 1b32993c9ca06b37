"""The broker's loggers and their levels, as `kafka-configs --entity-type broker-loggers` sees them (KIP-412)."""

from __future__ import annotations

import logging

ROOT = "root"
"""Kafka's name for the logger above all others; here that is `kwire`."""

LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Kafka's level names; Python has no level below DEBUG."""

_NAMES = {number: name for name, number in LEVELS.items() if name != "TRACE"}


def levels() -> dict[str, str]:
    """Every logger there is, with the level in force for it."""
    found = {ROOT: _name_of(logging.getLogger("kwire"))}
    for name in sorted(logging.getLogger().manager.loggerDict):
        if name.startswith("kwire."):
            found[name] = _name_of(logging.getLogger(name))
    return found


def set_level(name: str, level: str | None) -> None:
    """Sets a logger's level (one of LEVELS); None makes it follow the loggers above it again."""
    logging.getLogger("kwire" if name == ROOT else name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _name_of(logger: logging.Logger) -> str:
    return _NAMES.get(logger.getEffectiveLevel(), "WARN")
