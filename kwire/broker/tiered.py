"""Tiered storage as a part of a broker: opening the object store, and fetches that reach into it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import trio

from kwire.cluster.replica import Bound
from kwire.cluster.tiering.settings import TieringSettings
from kwire.cluster.tiering.tiering import Tiering
from kwire.config.remote_log_metadata import RemoteLogMetadataConfig
from kwire.config.remote_storage import RemoteStorageConfig, check_manager
from kwire.protocol.errors import KafkaError
from kwire.remote.object_store import ObjectStore
from kwire.remote.opening import open_object_store
from kwire.storage import layout

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.fetching import RemoteShare

logger = logging.getLogger(__name__)


def settings_of(broker: Broker) -> TieringSettings:
    """Raises ConfigError."""
    config = broker.config
    check_manager(config["remote.log.storage.manager.class.name"])
    storage = RemoteStorageConfig(config.originals, config["remote.log.storage.manager.impl.prefix"])
    metadata = RemoteLogMetadataConfig(config.originals, config["remote.log.metadata.manager.impl.prefix"])
    return TieringSettings(lambda: broker.config, storage, metadata)


async def open_store(broker: Broker) -> ObjectStore:
    """The object store of the configuration. Raises ConfigError, RemoteStorageError."""
    settings = settings_of(broker)
    for line in (*settings.storage.warnings, *settings.metadata.warnings):
        logger.warning("%s", line)
    written = broker.logs.online_dirs[0].file(layout.OBJECT_STORES)
    return await open_object_store(settings.storage, broker.ports, written)


def make(broker: Broker, objects: ObjectStore, spawn: Callable[..., None]) -> Tiering:
    """`spawn` starts a task that lives as long as the broker. Raises ConfigError."""
    return Tiering(
        settings_of(broker),
        broker.store,
        broker.controller,
        broker.replicas,
        broker.logs.services,
        objects,
        broker.logs.online_dirs[0],
        broker.randomness,
        spawn,
    )


async def fetch_tiered(tiering: Tiering, shares: Sequence[RemoteShare], bound: Bound) -> None:
    """Reads the targets whose offsets are in remote storage only, all at once."""
    async with trio.open_nursery() as nursery:
        for share in shares:
            nursery.start_soon(_fetch, tiering, share, bound)


async def _fetch(tiering: Tiering, share: RemoteShare, bound: Bound) -> None:
    target, max_bytes, min_one = share
    partition, read = target.partition, target.read
    if partition is None or read is None:
        return
    try:
        found = await tiering.reads.fetch(
            partition,
            target.asked.fetch_offset,
            max_bytes,
            min_one=min_one,
            committed=bound is Bound.LAST_STABLE_OFFSET,
        )
        if found.here_from is not None:
            read = await partition.fetch(found.here_from, max_bytes, bound, min_one=min_one)
        else:
            read = read._replace(slice=found.slice, aborted=found.aborted)
    except KafkaError as error:
        target.take(None, error)
    else:
        target.take(read)
