"""The settings of remote storage, from what a broker was started with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire.config.definition import Status
from kwire.config.errors import ConfigError
from kwire.config.keys.remote_storage import BACKENDS, DIRECTORY, REMOTE_STORAGE_KEYS, S3

_NEEDED = {DIRECTORY: "storage.root", S3: "storage.s3.bucket.name"}
_MOOT_BEGINNINGS = ("fetch.chunk.cache.", "fetch.indexes.cache.", "segment.manifest.cache.")
"""Caches of Aiven's storage manager: kwire keeps what it read elsewhere, if at all."""


class RemoteStorageConfig:
    """The value of every setting of remote storage. Immutable."""

    def __init__(self, originals: Mapping[str, str], prefix: str = "rsm.config.") -> None:
        """Takes what a broker was started with, as text by key; other keys than those with the prefix do not count.

        Raises ConfigError, which names keys with the prefix, for what is not valid, missing, or asks for a feature
        that does not exist yet. `warnings` are lines for the log.
        """
        self._prefix = prefix
        self._values = {key.name: key.default for key in REMOTE_STORAGE_KEYS.values()}
        unknown: list[str] = []
        moot: list[str] = []
        for name, text in sorted(originals.items()):
            if not name.startswith(prefix):
                continue
            key = REMOTE_STORAGE_KEYS.get(name.removeprefix(prefix))
            if key is not None:
                named = key._replace(name=name)
                self._values[key.name] = named.parse(text)
                named.check_supported(self._values[key.name])
                if key.status is Status.MOOT:
                    moot.append(name)
            else:
                (moot if name.removeprefix(prefix).startswith(_MOOT_BEGINNINGS) else unknown).append(name)
        lines = []
        if unknown:
            lines.append(f"unknown configuration: {', '.join(unknown)}")
        if moot:
            lines.append(f"no effect, kwire has nothing to tune there: {', '.join(moot)}")
        self.warnings = tuple(lines)
        self._check()

    def __getitem__(self, name: str) -> Any:
        """The typed value of a setting, by its name without the prefix; None where nothing is set."""
        return self._values[name]

    @property
    def backend(self) -> str:
        """Which object store: DIRECTORY or S3."""
        return BACKENDS[self._values["storage.backend.class"]]

    def full_name(self, name: str) -> str:
        """The key of a setting as an administrator writes it."""
        return self._prefix + name

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
