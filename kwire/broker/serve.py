"""`kwire serve`: a broker on the real machine, from its configuration to its last answer."""

from __future__ import annotations

import logging
import signal
import sys

import trio

from kwire.broker import logs
from kwire.broker.broker import Broker, StartError
from kwire.config.broker import BrokerConfig, ConfigError
from kwire.ports.bundle import Ports
from kwire.ports.system import system_ports

logger = logging.getLogger(__name__)

STOP_WITHIN_S = 3.0
"""After a signal, the longest that owed answers are waited for before the connections are cut and the logs closed."""


def run(config: BrokerConfig, log_level: str = "warning") -> int:
    """Serves until SIGTERM or SIGINT; returns the process's exit code: 0, or 1 where the broker could not start."""
    logs.configure(log_level)
    for warning in config.warnings:
        logger.warning("%s", warning)
    failures: list[BaseException] = []
    try:
        trio.run(_serve, config, _ports(config))
    except* (StartError, ConfigError) as group:
        failures += _leaves(group)
    for failure in failures:
        print(f"kwire: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _ports(config: BrokerConfig) -> Ports:
    return system_ports(
        threads=config["background.threads"],
        send_buffer_bytes=config["socket.send.buffer.bytes"],
        receive_buffer_bytes=config["socket.receive.buffer.bytes"],
    )


async def _serve(config: BrokerConfig, ports: Ports) -> None:
    broker = Broker(config, ports)
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            endpoints = await nursery.start(broker.run)
            for endpoint in endpoints:
                print(f"kwire ready on {endpoint.host}:{endpoint.port}", flush=True)
                break
            async for _ in signals:
                broker.stop(STOP_WITHIN_S)
                break
