"""The settings of remote storage, from what a broker was started with."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.errors import ConfigError
from kwire.config.keys.remote_storage import BACKENDS, DIRECTORY, REMOTE_STORAGE_KEYS, S3
from kwire.config.prefixed import PrefixedConfig
from kwire.config.types import invalid

_NEEDED = {DIRECTORY: "storage.root", S3: "storage.s3.bucket.name"}
_MOOT_BEGINNINGS = ("fetch.chunk.cache.", "fetch.indexes.cache.", "segment.manifest.cache.")
"""Caches of Aiven's storage manager that kwire has not, or that are tuned otherwise."""


_MANAGER = "io.aiven.kafka.tieredstorage.RemoteStorageManager"
"""The storage manager whose settings kwire takes."""


def check_manager(class_name: str | None) -> None:
    """Raises ConfigError where `remote.log.storage.manager.class.name` asks for what kwire cannot load."""
    if class_name not in (None, _MANAGER):
        raise invalid(
            "remote.log.storage.manager.class.name",
            class_name,
            "kwire loads no classes, it has stores of its own: leave it out, or say "
            f"{_MANAGER}, whose settings they take",
        )


class RemoteStorageConfig(PrefixedConfig):
    """The value of every setting of remote storage. Immutable."""

    def __init__(self, originals: Mapping[str, str], prefix: str = "rsm.config.") -> None:
        """Raises as `PrefixedConfig`, and ConfigError for what is missing or does not go together."""
        super().__init__(originals, prefix, REMOTE_STORAGE_KEYS, _MOOT_BEGINNINGS)
        self._check()

    @property
    def backend(self) -> str:
        """Which object store: DIRECTORY or S3."""
        return BACKENDS[self._values["storage.backend.class"]]

    def _check(self) -> None:
        if self["storage.backend.class"] is None:
            raise ConfigError(f"{self.full_name('storage.backend.class')} must be set: {DIRECTORY} or {S3}")
        needed = _NEEDED[self.backend]
        if self[needed] is None:
            raise ConfigError(f"{self.full_name(needed)} must be set for the storage {self.backend}")
        if (self["storage.aws.access.key.id"] is None) != (self["storage.aws.secret.access.key"] is None):
            names = " and ".join(map(self.full_name, ("storage.aws.access.key.id", "storage.aws.secret.access.key")))
            raise ConfigError(f"{names} must be set both, or neither")
        if self["storage.s3.api.call.attempt.timeout"] > self["storage.s3.api.call.timeout"]:
            raise ConfigError(
                f"{self.full_name('storage.s3.api.call.timeout')} must be at least "
                f"{self.full_name('storage.s3.api.call.attempt.timeout')}"
            )
