"""Changing configs as admins ask for it: SET, DELETE, APPEND and SUBTRACT on what is set now (KIP-339).

Pure: what is set and what is asked go in, what will be set comes out, or what is wrong. Whether the outcome is valid is
the question of `validate_topic_configs` or `validate_dynamic`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kwire.config.definition import ConfigKey
from kwire.config.errors import ConfigError, InvalidRequest
from kwire.config.keys import BROKER_KEYS
from kwire.config.types import Type


class Op(IntEnum):
    """What to do with a key; the numbers are those of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OPS = frozenset(int(op) for op in Op)


class Alteration(NamedTuple):
    """One key to change. `op` as on the wire, `value` None for DELETE."""

    name: str
    op: int
    value: str | None = None


def check_alterations(alterations: Sequence[Alteration]) -> None:
    """Raises InvalidRequest for a key asked for twice, a value that is missing, an operation that does not exist."""
    _check_once(alteration.name for alteration in alterations)
    _check_values(name for name, op, value in alterations if op != Op.DELETE and value is None)
    for _, op, _ in alterations:
        if op not in _OPS:
            raise InvalidRequest(f"Unknown operations type {op}")


def check_replacement(configs: Sequence[tuple[str, str | None]]) -> None:
    """The same for AlterConfigs, which names all that shall be set."""
    _check_once(name for name, _ in configs)
    _check_values(name for name, value in configs if value is None)


def alter(
    current: Mapping[str, str], alterations: Sequence[Alteration], keys: Mapping[str, ConfigKey]
) -> dict[str, str]:
    """What is set after the alterations, which `check_alterations` has let pass.

    APPEND and SUBTRACT work on lists: on the value that is set, or else on the key's own default; an item that is
    there is not added again, and one that is there twice is taken away once. Raises ConfigError for other keys than
    lists.
    """
    values = dict(current)
    for name, op, value in alterations:
        if op == Op.DELETE:
            values.pop(name, None)
        elif op == Op.SET:
            values[name] = value or ""
        else:
            items = _items(values.get(name), _list_key(name, Op(op), keys))
            for item in _split(value or ""):
                if op == Op.APPEND and item not in items:
                    items.append(item)
                elif op == Op.SUBTRACT and item in items:
                    items.remove(item)
            values[name] = ",".join(items)
    return values


def changed(current: Mapping[str, str], wanted: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What to set and what to remove to come from one to the other."""
    return (
        {name: value for name, value in wanted.items() if current.get(name) != value},
        tuple(name for name in current if name not in wanted),
    )


def _check_once(names: Iterable[str]) -> None:
    listed = list(names)
    if len(set(listed)) < len(listed):
        raise InvalidRequest("Error due to duplicate config keys")


def _check_values(missing: Iterable[str]) -> None:
    names = ", ".join(missing)
    if names:
        raise InvalidRequest(f"Null value not supported for : {names}")


def _list_key(name: str, op: Op, keys: Mapping[str, ConfigKey]) -> ConfigKey:
    key = keys.get(name)
    if key is not None and key.type is Type.LIST:
        return key
    if keys is not BROKER_KEYS:
        raise ConfigError(f"Can't {op.name} to key {name} because its type is not LIST.")
    if key is None:
        raise ConfigError(f"Unknown config name: {name}")
    raise ConfigError(f"Config value {op.name.lower()} is not allowed for config key: {name}")


def _items(text: str | None, key: ConfigKey) -> list[str]:
    text = key.default_text if text is None else text
    return [item for item in _split(text or "") if item]


def _split(text: str) -> list[str]:
    """As Java's String.split: without empty items at the end, but for a text that is one itself."""
    return text.rstrip(",").split(",") if text.strip(",") or not text else []
