"""Opening the object store that the configuration asks for, and making sure that it can be used."""

from __future__ import annotations

import logging

from kwire.config.errors import ConfigError
from kwire.config.keys.remote_storage import S3
from kwire.config.remote_storage import RemoteStorageConfig
from kwire.ports.bundle import Ports
from kwire.remote.errors import RemoteStorageError
from kwire.remote.keys import LONGEST_NAME, check_prefix
from kwire.remote.object_store import ObjectStore

logger = logging.getLogger(__name__)

PROBE = "kwire-probe"
PROBE_CALL_MS = 10_000
PROBE_ATTEMPT_MS = 7_000
LONGEST_PREFIX = LONGEST_NAME


async def open_object_store(config: RemoteStorageConfig, ports: Ports, written: str | None = None) -> ObjectStore:
    """The store of the configuration. An object is written to it, read and deleted, to see whether that can be.

    `written`: where it is kept which directories were written to as stores; see DirectoryObjectStore.

    Raises ConfigError for settings that no store can have, RemoteStorageError where the store refuses them (no such
    bucket, no access): one line each, which names the store. Where it cannot be reached or cannot serve now, the line
    goes to the log: a broker must be able to start while its store is away. The caller closes the store.
    """
    prefix = _prefix(config)
    store, probed = _s3(config, prefix) if config.backend == S3 else _directory(config, prefix, ports, written)
    try:
        await _probe(probed, f"{PROBE}-{ports.randomness.uuid().hex()}")
    except RemoteStorageError as error:
        line = f"cannot use {store.place}: {error}"
        if not error.retriable:
            await store.close()
            raise RemoteStorageError(line) from error
        logger.warning("%s", line)
    except BaseException:
        await store.close()
        raise
    finally:
        if probed is not store:
            await probed.close()
    return store


def _s3(config: RemoteStorageConfig, prefix: str) -> tuple[ObjectStore, ObjectStore]:
    """The store, and one like it that gives up sooner: nobody waits for minutes to be told of a wrong address."""
    try:
        from kwire.remote.s3 import S3ObjectStore
    except ImportError:
        raise ConfigError("remote storage in S3 needs obstore: pip install 'kwire[s3]'") from None
    from kwire.remote.s3_settings import Patience

    sooner = Patience.of(config).at_most(PROBE_CALL_MS, PROBE_ATTEMPT_MS)
    return S3ObjectStore(config, prefix), S3ObjectStore(config, prefix, sooner)


def _directory(
    config: RemoteStorageConfig, prefix: str, ports: Ports, written: str | None
) -> tuple[ObjectStore, ObjectStore]:
    from kwire.remote.directory import DirectoryObjectStore

    store = DirectoryObjectStore(f"{config['storage.root']}/{prefix}", ports, written)
    return store, store


def _prefix(config: RemoteStorageConfig) -> str:
    """The folder of all objects: empty, or with a slash at its end."""
    prefix = config["key.prefix"].strip("/")
    if not prefix:
        return ""
    try:
        check_prefix(prefix + "/")
    except ValueError:
        raise ConfigError(
            f"{config.full_name('key.prefix')} may have letters, digits, '.', '_' and '-' between slashes, "
            f"not {prefix!r}"
        ) from None
    if len(prefix) > LONGEST_PREFIX:
        raise ConfigError(f"{config.full_name('key.prefix')} may have {LONGEST_PREFIX} characters at most")
    return prefix + "/"


async def _probe(store: ObjectStore, key: str) -> None:
    await store.put(key, [key.encode()])
    if await store.get(key, 0, len(key) + 1) != key.encode():
        raise RemoteStorageError(f"{key}: what is read is not what was written")
    await store.delete([key])
