"""Listeners: where to bind, and which address a client that came by one of them is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kwire.config.broker import BrokerConfig, ConfigError
from kwire.metadata.image import Endpoint

_LISTENER = re.compile(r"^(?P<name>[^:/]+)://(?:\[(?P<six>[^\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>-?\d+)$")
_WILDCARDS = frozenset({"", "0.0.0.0", "::"})


@dataclass(frozen=True, slots=True)
class ListenerSpec:
    """One of `listeners`: its name, security protocol, and the host and port to bind (port 0: a free one)."""

    name: str
    security_protocol: str
    host: str
    port: int


def bound(config: BrokerConfig) -> tuple[ListenerSpec, ...]:
    """What `listeners` and `listener.security.protocol.map` ask for.

    Raises ConfigError for malformed or repeated listeners, and protocols that do not exist (here).
    """
    specs = _parse("listeners", config["listeners"], _protocols(config))
    if not specs:
        raise ConfigError("listeners must name at least one listener, for example PLAINTEXT://localhost:9092")
    ports = [(spec.host, spec.port) for spec in specs if spec.port]
    if len(set(ports)) != len(ports):
        raise ConfigError("listeners: each listener must have a different port")
    inter_broker = config["inter.broker.listener.name"]
    if inter_broker and inter_broker not in {spec.name for spec in specs}:
        raise ConfigError(f"inter.broker.listener.name {inter_broker} is not one of listeners")
    return specs


def advertised(
    config: BrokerConfig, specs: Sequence[ListenerSpec], ports: Mapping[str, int], host_name: Callable[[], str]
) -> tuple[Endpoint, ...]:
    """The endpoints to register, one a listener: from `advertised.listeners`, else where the listener is bound.

    `ports` are the real ports by listener name (for port 0). A listener bound to every interface is advertised with
    this machine's name, as in Kafka. Raises ConfigError for addresses nobody could connect to.
    """
    told = {}
    if config["advertised.listeners"]:
        told = {
            spec.name: spec
            for spec in _parse("advertised.listeners", config["advertised.listeners"], _protocols(config))
        }
        for name in told.keys() - {spec.name for spec in specs}:
            raise ConfigError(f"advertised.listeners names {name}, which is not one of listeners")
    endpoints = []
    for spec in specs:
        address = told.get(spec.name)
        if told and address is None:
            continue
        if address is None:
            address = replace(spec, host=host_name() if spec.host in _WILDCARDS else spec.host)
        elif address.host in _WILDCARDS:
            raise ConfigError(
                f"advertised.listeners: {address.name} has no host a client could connect to; "
                "name the host or leave advertised.listeners out"
            )
        port = address.port or ports[spec.name]
        endpoints.append(Endpoint(spec.name, address.host, port, spec.security_protocol))
    return tuple(endpoints)


def _protocols(config: BrokerConfig) -> dict[str, str]:
    protocols = {}
    for pair in _split(config["listener.security.protocol.map"]):
        name, colon, protocol = pair.partition(":")
        if not colon:
            raise ConfigError(f"listener.security.protocol.map: {pair!r} is not LISTENER:PROTOCOL")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def _parse(key: str, value: object, protocols: Mapping[str, str]) -> tuple[ListenerSpec, ...]:
    specs: dict[str, ListenerSpec] = {}
    for text in _split(value):
        match = _LISTENER.match(text)
        if match is None:
            raise ConfigError(f"{key}: {text!r} is not NAME://HOST:PORT")
        name = match["name"].upper()
        port = int(match["port"])
        if not 0 <= port <= 65535:
            raise ConfigError(f"{key}: port {port} of {name} is not within 0 and 65535")
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError(
                f"{key}: no security protocol for listener {name}; add it to listener.security.protocol.map"
            )
        if protocol != "PLAINTEXT":
            raise ConfigError(f"{key}: listener {name} wants {protocol}; this version of kwire offers PLAINTEXT only")
        if name in specs:
            raise ConfigError(f"{key}: listener name {name} stands there twice")
        specs[name] = ListenerSpec(name, protocol, match["six"] if match["six"] is not None else match["host"], port)
    return tuple(specs.values())


def _split(value: object) -> list[str]:
    parts = value if isinstance(value, (list, tuple)) else str(value or "").split(",")
    return [str(part).strip() for part in parts if str(part).strip()]
