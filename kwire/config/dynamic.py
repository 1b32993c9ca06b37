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


def _refuse(names: Iterable[str], reason: str) -> None:
    found = list(names)
    if found:
        raise InvalidRequest(f"{reason}: [{', '.join(found)}]")
