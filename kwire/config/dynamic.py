"""What an admin may set while a broker runs, for one broker or as the default of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kwire.config.broker import BrokerConfig
from kwire.config.definition import Scope
from kwire.config.errors import ConfigError, InvalidRequest
from kwire.config.keys import BROKER_KEYS


def validate_dynamic(config: BrokerConfig, proposed: Mapping[str, str], *, per_broker: bool) -> None:
    """Raises InvalidRequest where a broker, running with `config`, must not get `proposed` as its dynamic configs.

    `proposed` is all that would be set at that level, not just what changes. `per_broker`: for this broker, else the
    cluster-wide default. Keys that nobody knows are let through, as in Apache Kafka, where plug-ins may know them.
    """
    _refuse(
        (name for name in proposed if name in BROKER_KEYS and BROKER_KEYS[name].scope is Scope.READ_ONLY),
        "Cannot update these configs dynamically",
    )
    _refuse(
        (name for name in proposed if name.startswith("listener.name.")),
        "This version of kwire has no configuration for single listeners",
    )
    try:
        for name, text in proposed.items():
            if name in BROKER_KEYS:
                BROKER_KEYS[name].check_supported(BROKER_KEYS[name].parse(text))
        if not per_broker:
            _refuse(
                (name for name in proposed if name in BROKER_KEYS and BROKER_KEYS[name].scope is Scope.PER_BROKER),
                "Cannot update these configs at default cluster level, broker id must be specified",
            )
        if per_broker:
            config.with_dynamic(proposed, config.dynamic_defaults)
        else:
            config.with_dynamic(config.dynamic, proposed)
    except InvalidRequest:
        raise
    except ConfigError as error:
        raise InvalidRequest(str(error)) from None


def within_bounds(config: BrokerConfig, stored: Mapping[str, str]) -> tuple[Mapping[str, str], list[str]]:
    """What counts of dynamic configs that were valid when they were set, before a start with narrower bounds.

    And a line for the log for each that is capped.
    """
    name, least, greatest = (f"group.consumer.{bound}assignment.interval.ms" for bound in ("", "min.", "max."))
    if name not in stored:
        return stored, []
    value = BROKER_KEYS[name].parse(stored[name])
    capped = min(max(value, config[least]), config[greatest])
    if capped == value:
        return stored, []
    return {**stored, name: str(capped)}, [f"{name}={value} is out of bounds, {capped} counts"]


def _refuse(names: Iterable[str], reason: str) -> None:
    found = list(names)
    if found:
        raise InvalidRequest(f"{reason}: [{', '.join(found)}]")
