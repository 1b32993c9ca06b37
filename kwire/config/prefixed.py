"""Settings behind a prefix: what Apache Kafka passes on to a class that an administrator installs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire.config.definition import ConfigKey, Status


class PrefixedConfig:
    """The value of every setting behind a prefix. Immutable."""

    def __init__(
        self,
        originals: Mapping[str, str],
        prefix: str,
        keys: Mapping[str, ConfigKey],
        moot_beginnings: tuple[str, ...] = (),
    ) -> None:
        """Takes what a broker was started with, as text by key; other keys than those with the prefix do not count.

        `keys` by name without the prefix; what begins with one of `moot_beginnings` tunes what kwire does not have.
        Raises ConfigError, which names keys with the prefix, for what is not valid, or asks for a feature that does not
        exist yet. `warnings` are lines for the log.
        """
        self._prefix = prefix
        self._values = {key.name: key.default for key in keys.values()}
        unknown: list[str] = []
        moot: list[str] = []
        for name, text in sorted(originals.items()):
            if not name.startswith(prefix):
                continue
            key = keys.get(name.removeprefix(prefix))
            if key is not None:
                named = key._replace(name=name)
                self._values[key.name] = named.parse(text)
                named.check_supported(self._values[key.name])
                if key.status is Status.MOOT:
                    moot.append(name)
            else:
                (moot if name.removeprefix(prefix).startswith(moot_beginnings) else unknown).append(name)
        lines = []
        if unknown:
            lines.append(f"unknown configuration: {', '.join(unknown)}")
        if moot:
            lines.append(f"no effect, kwire has nothing to tune there: {', '.join(moot)}")
        self.warnings = tuple(lines)

    def __getitem__(self, name: str) -> Any:
        """The typed value of a setting, by its name without the prefix; None where nothing is set."""
        return self._values[name]

    def full_name(self, name: str) -> str:
        """The key of a setting as an administrator writes it."""
        return self._prefix + name
