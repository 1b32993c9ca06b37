"""`kwire serve`: runs a broker."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kwire.cli.serve_options import DEFAULT_LOG_LEVEL, LOG_LEVELS
from kwire.config.errors import ConfigError


def serve(
    properties: str | None = None,
    listen: str | None = None,
    data_dir: Sequence[str] | None = None,
    set: Sequence[str] | None = None,
    log_level: str | None = None,
) -> int:
    """Runs a broker.

    It runs until Ctrl-C or SIGTERM. Its configuration comes from flags,
    KWIRE_... environment variables (KWIRE_LOG_RETENTION_MS), the file,
    and defaults, in this order. When it accepts connections it prints
    one line: kwire ready on HOST:PORT.
    """
    if log_level is not None and log_level not in LOG_LEVELS:
        raise ConfigError(f"--log-level {log_level}: must be one of {', '.join(LOG_LEVELS)}")
    from kwire.config.broker import load

    config = load(properties, os.environ, flags(listen, data_dir or (), set or ()))
    from kwire.broker.serve import run

    return run(config, log_level or DEFAULT_LOG_LEVEL)


def flags(listen: str | None, data_dirs: Sequence[str], settings: Sequence[str]) -> dict[str, str]:
    """Configuration keys from the flags; --listen and --data-dir go before --set. Raises ConfigError."""
    keys = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {setting}: must be KEY=VALUE")
        keys[key.strip()] = value
    if data_dirs:
        if any("," in folder for folder in data_dirs):
            raise ConfigError("--data-dir: a folder's name must not have a comma")
        keys["log.dirs"] = ",".join(data_dirs)
    if listen is not None:
        keys["listeners"] = f"PLAINTEXT://{_listen_address(listen)}"
    return keys


def _listen_address(text: str) -> str:
    """HOST:PORT; `:PORT` or `PORT` is every address of this machine."""
    host, _, port = text.rpartition(":")
    number = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
    if not number or (":" in host and not host.startswith("[")):
        raise ConfigError(f"--listen {text}: must be HOST:PORT (an IPv6 address in brackets: [::1]:9092)")
    return f"{host}:{port}"
