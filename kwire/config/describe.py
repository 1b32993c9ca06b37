"""Configs as DescribeConfigs shows them: each with its value, where that comes from, and what else it could come from.

Pure: rows come out, the handler turns them into a response. Which keys are shown, the order of synonyms and their
sources are Apache Kafka's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from kwire.config.broker import BrokerConfig
from kwire.config.definition import ConfigKey, Scope
from kwire.config.group_keys import BROKER_SYNONYMS, GROUP_KEYS
from kwire.config.keys import BROKER_KEYS
from kwire.config.topic import broker_default
from kwire.config.topic_keys import SAME_SETTING, SYNONYMS, TOPIC_KEYS
from kwire.config.types import Type, to_text


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are those of DescribeConfigs (`config_source`)."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    GROUP_CONFIG = 8


class SynonymRow(NamedTuple):
    """A name under which the value is set, or would be if those before it were not."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigRow(NamedTuple):
    """One config. `value` is None where nothing is set and where it is a secret (`sensitive`)."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: Type
    documentation: str | None
    synonyms: tuple[SynonymRow, ...]


def describe_topic(
    broker: BrokerConfig, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigRow]:
    """A topic's configs: all, or those named (names that are no topic config give no row)."""
    rows = []
    for name, key in TOPIC_KEYS.items():
        if not _wanted(name, names) or (key.internal and name not in overrides):
            continue
        synonyms = []
        value = broker_default(broker, name)
        if value is None:
            value = key.default
        if name in overrides:
            value = key.parse(overrides[name])
            synonyms.append(SynonymRow(name, to_text(value), ConfigSource.DYNAMIC_TOPIC_CONFIG))
        if name in SYNONYMS:
            synonyms += _broker_synonyms(broker, SYNONYMS[name][0].broker_key)
        rows.append(_row(key, to_text(value), synonyms, read_only=False))
    return rows


def describe_group(
    broker: BrokerConfig, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigRow]:
    """A group's configs: all, or those named (names that are no group config give no row)."""
    rows = []
    for name, key in GROUP_KEYS.items():
        if not _wanted(name, names):
            continue
        broker_key = BROKER_SYNONYMS.get(name)
        if broker_key is None:
            value = key.default
            synonyms = [SynonymRow(name, key.default_text, ConfigSource.DEFAULT_CONFIG)]
        else:
            value = broker[broker_key]
            synonyms = _broker_synonyms(broker, broker_key)
        if name in overrides:
            value = key.parse(overrides[name])
            synonyms.insert(0, SynonymRow(name, to_text(value), ConfigSource.GROUP_CONFIG))
        rows.append(_row(key, to_text(value), synonyms, read_only=False))
    return rows


def describe_broker(broker: BrokerConfig, names: Collection[str] | None = None) -> list[ConfigRow]:
    """The configs of this broker: every key that is not internal, and what else was set."""
    rows = []
    for name, key in BROKER_KEYS.items():
        synonyms = _broker_synonyms(broker, name)
        hidden = (key.internal or key.admin_only) and not _is_set(synonyms)
        if _wanted(name, names) and not hidden:
            rows.append(_row(key, broker.text(name), synonyms, read_only=key.scope is Scope.READ_ONLY))
    unknown = {**broker.originals, **broker.dynamic_defaults, **broker.dynamic}.keys() - BROKER_KEYS.keys()
    rows += [_unknown_row(name, _broker_synonyms(broker, name)) for name in sorted(unknown) if _wanted(name, names)]
    return rows


def describe_broker_defaults(defaults: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigRow]:
    """The cluster-wide broker configs (the broker resource with the empty name): what admins set there, no more."""
    rows = []
    for name, text in defaults.items():
        if not _wanted(name, names):
            continue
        key = BROKER_KEYS.get(name)
        shown = None if key is None or key.sensitive else text
        synonyms = [SynonymRow(name, shown, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)]
        if key is None:
            rows.append(_unknown_row(name, synonyms))
        else:
            rows.append(_row(key, shown, synonyms, read_only=key.scope is Scope.READ_ONLY))
    return rows


def _wanted(name: str, names: Collection[str] | None) -> bool:
    return not names or name in names


def _is_set(synonyms: Iterable[SynonymRow]) -> bool:
    return any(synonym.source is not ConfigSource.DEFAULT_CONFIG for synonym in synonyms)


def _broker_synonyms(broker: BrokerConfig, name: str) -> list[SynonymRow]:
    """Where a broker key is set: by level, and at each under its names. None where the key's own name comes nowhere."""
    group = SAME_SETTING.get(name, (name,))
    key = BROKER_KEYS.get(name)
    secret = key is None or key.sensitive
    levels: tuple[tuple[ConfigSource, Any], ...] = (
        (ConfigSource.DYNAMIC_BROKER_CONFIG, broker.dynamic.get),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, broker.dynamic_defaults.get),
        (ConfigSource.STATIC_BROKER_CONFIG, broker.originals.get),
        (ConfigSource.DEFAULT_CONFIG, _default_text),
    )
    rows: list[SynonymRow] = []
    for source, value_of in levels:
        for other in group:
            value = value_of(other)
            if value is not None and (rows or other == name):
                rows.append(SynonymRow(other, None if secret else value, source))
    return rows


def _default_text(name: str) -> str | None:
    key = BROKER_KEYS.get(name)
    return None if key is None else key.default_text


def _row(key: ConfigKey, value: str | None, synonyms: list[SynonymRow], *, read_only: bool) -> ConfigRow:
    return ConfigRow(
        key.name,
        None if key.sensitive else value,
        synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        read_only,
        key.sensitive,
        key.type,
        key.doc,
        tuple(synonyms),
    )


def _unknown_row(name: str, synonyms: list[SynonymRow]) -> ConfigRow:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return ConfigRow(name, None, source, True, True, Type.UNKNOWN, None, tuple(synonyms))
