"""The configuration of a broker: where its values come from, what they are, what is wrong with them.

Precedence of what a broker is started with: flags, environment (KWIRE_LOG_RETENTION_MS), file, default. Over these
stand what admins set while it runs: for this broker, then for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kwire.config.checks import check_at_run_time, check_at_start, check_together
from kwire.config.definition import Status
from kwire.config.errors import ConfigError
from kwire.config.keys import BROKER_KEYS
from kwire.config.properties import PropertiesError, parse_properties
from kwire.config.topic_keys import SAME_SETTING
from kwire.config.types import to_text

if TYPE_CHECKING:
    from kwire.ports.files import FileSystem

__all__ = ["BrokerConfig", "ConfigError", "load"]

ENVIRONMENT_PREFIX = "KWIRE_"

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class BrokerConfig:
    """The value of every broker key. Immutable; two are equal only if they are the same object."""

    __slots__ = ("_values", "dynamic", "dynamic_defaults", "originals", "warnings")

    def __init__(self, originals: Mapping[str, str], *, at_start: bool = True) -> None:
        """The configuration a broker starts with, or (not `at_start`) goes on with, from text by key.

        Raises ConfigError for a value that is not valid, for values that do not go together, and for a key whose
        feature does not exist yet unless it has its default value. `warnings` are lines for the log.
        """
        self.originals: Mapping[str, str] = MappingProxyType(dict(originals))
        """What the broker was started with, as text, unknown keys included."""
        self.dynamic: Mapping[str, str] = _NOTHING
        """What admins set for this broker."""
        self.dynamic_defaults: Mapping[str, str] = _NOTHING
        """What admins set for all brokers."""
        self._values = _parse_all(self.originals)
        _fill_in_ids(self._values, self.originals)
        _drop_controller_listeners(self._values)
        check_together(self._values)
        if at_start:
            check_at_start(self._values)
        self.warnings: tuple[str, ...] = _warnings(self.originals, self._values)

    def __getitem__(self, name: str) -> Any:
        """The typed value: int, bool, float, str, tuple of str (LIST), Password, or None where nothing is set.

        KeyError for a name that is no broker key.
        """
        return self._values[name]

    def text(self, name: str) -> str | None:
        """The value as text."""
        return to_text(self._values[name])

    def with_dynamic(self, overrides: Mapping[str, str], defaults: Mapping[str, str] = _NOTHING) -> BrokerConfig:
        """This broker's start configuration with what admins set for it (`overrides`) and for all (`defaults`).

        Any earlier dynamic values are forgotten. Raises ConfigError.
        """
        if not overrides and not defaults and not self.dynamic and not self.dynamic_defaults:
            return self
        merged = dict(self.originals)
        for layer in (defaults, overrides):
            for name, text in layer.items():
                for other in SAME_SETTING.get(name, ()):
                    merged.pop(other, None)
                merged[name] = text
        config = BrokerConfig(merged, at_start=False)
        check_at_run_time(config._values, {*overrides, *defaults})
        config.originals = self.originals
        config.warnings = self.warnings
        config.dynamic = MappingProxyType(dict(overrides))
        config.dynamic_defaults = MappingProxyType(dict(defaults))
        return config

    @property
    def broker_id(self) -> int:
        """`node.id`, or `broker.id` where only that is set."""
        return self._values["node.id"]

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """`log.dirs`, or `log.dir` where that is not set."""
        return self._values["log.dirs"] or self._values["log.dir"]


def load(
    properties: str | None = None,
    environment: Mapping[str, str] = _NOTHING,
    flags: Mapping[str, str] = _NOTHING,
    *,
    files: FileSystem | None = None,
) -> BrokerConfig:
    """The configuration of a properties file, the environment's KWIRE_… variables and flags (text by key).

    Raises ConfigError, also where the file cannot be read. `files` defaults to the real ones.
    """
    originals: dict[str, str] = {}
    for layer in (_read(properties, files) if properties is not None else {}, _from_environment(environment), flags):
        for name in layer:  # log.retention.hours from a flag goes before log.retention.ms from the file
            for other in SAME_SETTING.get(name, ()):
                if other not in layer:
                    originals.pop(other, None)
        originals.update(layer)
    return BrokerConfig(originals)


def _read(path: str, files: FileSystem | None) -> dict[str, str]:
    if files is None:
        from kwire.ports.real_files import PosixFileSystem

        files = PosixFileSystem()
    try:
        return parse_properties(files.read(path).decode("iso-8859-1"))
    except PropertiesError as error:
        raise ConfigError(f"{path}, {error}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", "."): value
        for name, value in sorted(environment.items())
        if name.startswith(ENVIRONMENT_PREFIX)
    }


def _parse_all(originals: Mapping[str, str]) -> dict[str, Any]:
    values = dict(_DEFAULTS)
    for name, text in originals.items():
        key = BROKER_KEYS.get(name)
        if key is None:
            if name.startswith("listener.name."):
                raise ConfigError(f"{name} is set, but this version of kwire has no configuration for single listeners")
            continue
        values[name] = key.parse(text)
        key.check_supported(values[name])
    return values


def _fill_in_ids(values: dict[str, Any], originals: Mapping[str, str]) -> None:
    """Two names for one thing: the one that is not set takes the value of the other."""
    if values["broker.id"] == -1:
        values["broker.id"] = values["node.id"]
    elif "node.id" not in originals:
        values["node.id"] = values["broker.id"]


def _drop_controller_listeners(values: dict[str, Any]) -> None:
    """A KRaft file lists the controller's listeners among the broker's; they are not opened."""
    names = {name.upper() for name in values["controller.listener.names"]}
    if not names:
        return
    for key in ("listeners", "advertised.listeners"):
        if values[key] is not None:
            kept = tuple(text for text in values[key] if text.partition("://")[0].strip().upper() not in names)
            values[key] = kept or (None if key == "advertised.listeners" else BROKER_KEYS[key].default)


def _warnings(originals: Mapping[str, str], values: Mapping[str, Any]) -> tuple[str, ...]:
    lines = []
    by_status: dict[Status | None, list[str]] = {}
    passed_on: tuple[str, ...] = ()
    if values["remote.log.storage.system.enable"]:  # these are looked at where that begins
        passed_on = tuple(values[f"remote.log.{what}.manager.impl.prefix"] for what in ("storage", "metadata"))
    for name in sorted(originals):
        if name.startswith(passed_on):
            continue
        key = BROKER_KEYS.get(name)
        by_status.setdefault(None if key is None else key.status, []).append(name)
    if None in by_status:
        lines.append(f"unknown configuration: {', '.join(by_status[None])}")
    if Status.KRAFT in by_status:
        lines.append(f"no effect, kwire has no KRaft: {', '.join(by_status[Status.KRAFT])}")
    if Status.MOOT in by_status:
        lines.append(f"no effect, kwire has nothing to tune there: {', '.join(by_status[Status.MOOT])}")
    return tuple(lines)


_DEFAULTS: Mapping[str, Any] = {key.name: key.default for key in BROKER_KEYS.values()}
