"""What of a broker's configuration tiered storage goes by."""

from __future__ import annotations

from collections.abc import Callable

from kwire.config.broker import BrokerConfig
from kwire.config.remote_log_metadata import RemoteLogMetadataConfig
from kwire.config.remote_storage import RemoteStorageConfig


class TieringSettings:
    """Named after the keys; those that may change while the broker runs are read anew each time."""

    def __init__(
        self, config: Callable[[], BrokerConfig], storage: RemoteStorageConfig, metadata: RemoteLogMetadataConfig
    ) -> None:
        """`config()` is the broker's current configuration; the others are what stands behind prefixes in it."""
        self._config = config
        now = config()
        self.task_interval_s: float = now["remote.log.manager.task.interval.ms"] / 1000
        self.first_backoff_s: float = now["remote.log.manager.task.retry.backoff.ms"] / 1000
        self.longest_backoff_s: float = now["remote.log.manager.task.retry.backoff.max.ms"] / 1000
        self.backoff_jitter: float = now["remote.log.manager.task.retry.jitter"]
        self.most_pending_reads: int = now["remote.log.reader.max.pending.tasks"]
        self.storage = storage
        self.metadata = metadata
        self.publish_within_s: float = metadata["remote.log.metadata.consume.wait.ms"] / 1000
        self.index_ttl_ms: int = now["remote.log.index.file.cache.ttl.ms"]
        self.chunk_bytes: int = storage["chunk.size"]
        self.chunk_cache_bytes: int = storage["fetch.chunk.cache.size"]
        kept_ms = storage["fetch.chunk.cache.retention.ms"]
        self.chunks_kept_s: float = kept_ms / 1000 if kept_ms >= 0 else float("inf")
        self.ahead_bytes: int = storage["fetch.chunk.cache.prefetch.max.size"]

    @property
    def copiers(self) -> int:
        """Partitions that are copied at once."""
        return self._config()["remote.log.manager.copier.thread.pool.size"]

    @property
    def expirers(self) -> int:
        """Partitions that are cleaned up at once."""
        return self._config()["remote.log.manager.expiration.thread.pool.size"]

    @property
    def readers(self) -> int:
        """Reads of objects at once."""
        return self._config()["remote.log.reader.threads"]

    @property
    def copy_rate(self) -> float:
        """Bytes a second."""
        return float(self._config()["remote.log.manager.copy.max.bytes.per.second"])

    @property
    def fetch_rate(self) -> float:
        """Bytes a second."""
        return float(self._config()["remote.log.manager.fetch.max.bytes.per.second"])

    @property
    def index_bytes(self) -> int:
        """Of indexes on the local disk."""
        return self._config()["remote.log.index.file.cache.total.size.bytes"]

    @property
    def fetch_wait_s(self) -> float:
        """How long a fetch waits for the first of its bytes."""
        return self._config()["remote.fetch.max.wait.ms"] / 1000

    @property
    def look_up_wait_s(self) -> float:
        """How long a look-up by time may take."""
        return self._config()["remote.list.offsets.request.timeout.ms"] / 1000
