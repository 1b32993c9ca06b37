"""Opening the object store that the configuration asks for, and making sure that it can be used."""

from __future__ import annotations

from kwire.config.errors import ConfigError
from kwire.config.keys.remote_storage import S3
from kwire.config.remote_storage import RemoteStorageConfig
from kwire.ports.bundle import Ports
from kwire.remote.errors import RemoteStorageError
from kwire.remote.keys import LONGEST_NAME, check_prefix
from kwire.remote.object_store import ObjectStore

PROBE = "kwire-probe"
LONGEST_PREFIX = LONGEST_NAME


async def open_object_store(config: RemoteStorageConfig, ports: Ports) -> ObjectStore:
    """The store of the configuration, which an object was just written to, read from and deleted from again.

    Raises ConfigError for settings that no store can have, RemoteStorageError where the store cannot be used: one line
    each, which names the store. The caller closes it.
    """
    prefix = _prefix(config)
    place: str
    store: ObjectStore
    if config.backend == S3:
        try:
            from kwire.remote.s3 import S3ObjectStore
        except ImportError:
            raise ConfigError("remote storage in S3 needs obstore: pip install 'kwire[s3]'") from None
        store = S3ObjectStore(config, prefix)
        place = store.place
    else:
        from kwire.remote.directory import DirectoryObjectStore

        store = DirectoryObjectStore(f"{config['storage.root']}/{prefix}", ports)
        place = store.place
    try:
        await _probe(store, f"{PROBE}-{ports.randomness.uuid().hex()}")
    except RemoteStorageError as error:
        await store.close()
        raise RemoteStorageError(f"cannot use {place}: {error}", retriable=error.retriable) from error
    except BaseException:
        await store.close()
        raise
    return store


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
