"""`kwire serve`: a broker on the real machine, from its configuration to its last answer."""

from __future__ import annotations

import gc
import logging
import resource
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import trio

from kwire.broker import logs
from kwire.broker.broker import Broker, StartError
from kwire.broker.log_dirs import LogDirsFailed
from kwire.config.broker import BrokerConfig, ConfigError
from kwire.metadata.image import MetadataImage
from kwire.ports.bundle import Ports
from kwire.ports.system import system_ports

logger = logging.getLogger(__name__)

STOP_WITHIN_S = 3.0
"""After a signal, the longest that owed answers are waited for before the connections are cut and the logs closed."""

_MANY = 500
"""New partitions that are worth it."""


def run(config: BrokerConfig, log_level: str = "warning") -> int:
    """Serves until SIGTERM, SIGINT or SIGHUP; returns the process's exit code: 0, 2 where its configuration is wrong,
    or 1 where the broker could not start, or lost its last log dir."""
    logs.configure(log_level)
    for warning in config.warnings:
        logger.warning("%s", warning)
    # Outside the receiver's life a signal is only noted: one before it ends the broker as soon as it runs, and a second
    # one, at whatever moment, does not cut a clean stop short.
    noted: list[int] = []
    stop_signals = _stop_signals()
    for number in stop_signals:
        signal.signal(number, lambda received, frame: noted.append(received))
    _raise_descriptor_limit()
    failures: list[BaseException] = []
    try:
        trio.run(_serve, config, _ports(config), stop_signals, noted)
    except* (StartError, ConfigError, LogDirsFailed) as group:
        failures += _leaves(group)
    for failure in failures:
        print(f"kwire: {failure}", file=sys.stderr)
    if not failures:
        return 0
    return 2 if all(isinstance(failure, ConfigError) for failure in failures) else 1


def _stop_signals() -> list[signal.Signals]:
    """SIGHUP, which a terminal sends that is closed, is none where whoever started the broker (nohup) ignores it."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGINT] + ([] if ignored else [signal.SIGHUP])


def _raise_descriptor_limit() -> None:
    """Takes as many descriptors as the system allows: many have a low limit that a program is expected to raise."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


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


async def _serve(
    config: BrokerConfig, ports: Ports, stop_signals: Sequence[signal.Signals], noted: Sequence[int]
) -> None:
    broker = Broker(config, ports)
    with trio.open_signal_receiver(*stop_signals) as signals:
        async with trio.open_nursery() as nursery:
            starting = trio.CancelScope()
            nursery.start_soon(_stop_on_signal, broker, starting, signals, noted)
            with starting:
                first, *_ = await nursery.start(broker.run)
                # What has been made by now lives as long as the process: the collector need not walk through it again.
                gc.freeze()
                broker.store.subscribe(_Frost(broker.store.image).follow)
                print(f"kwire ready on {first.host}:{first.port}", flush=True)
            if starting.cancelled_caught:
                nursery.cancel_scope.cancel()
            await broker.stopped.wait()
            nursery.cancel_scope.cancel()


class _Frost:
    """Has the collector leave alone what many new partitions are made of, too.

    To walk through 10,000 of them takes 50 ms, in which nobody is served. None of it is in a cycle, so that what
    belongs to a partition that is deleted goes without the collector.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._frozen = _partitions(image)

    async def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """The metadata's subscriber; to be told after who makes the partitions."""
        if after.topics is before.topics:
            return
        count = _partitions(after)
        if count >= self._frozen + _MANY:
            gc.collect(1)
            gc.freeze()
            self._frozen = count
        self._frozen = min(self._frozen, count)


def _partitions(image: MetadataImage) -> int:
    return sum(len(topic.partitions) for topic in image.topics.values())


async def _stop_on_signal(
    broker: Broker, starting: trio.CancelScope, signals: AsyncIterator[int], noted: Sequence[int]
) -> None:
    """Waits for the first signal and ends the broker: its start if that is not done, else with the answers it owes."""
    if not noted:
        async for _ in signals:
            break
    starting.cancel()
    broker.stop(STOP_WITHIN_S)
