"""An object store in a bucket of Amazon S3, or of a server that speaks its protocol. obstore does the talking.

    an object up to a part's size      one PUT
    a larger one                       a multipart upload: parts of one size, a few at a time, then it is completed

Either way S3 shows the object when all of it is there. An upload that is given up is aborted; one that a crash leaves
stays, unseen but paid for, until a lifecycle rule of the bucket removes it (AbortIncompleteMultipartUpload).

obstore signs every part with its SHA-256, which the server checks. It tries again what failed, with back-off, and what
was cut off in the middle of a download from there. What it gives is compared with what was asked for.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import obstore
import trio
from obstore.store import S3Store

from kwire.config.errors import ConfigError
from kwire.config.remote_storage import RemoteStorageConfig
from kwire.ports.asyncio_thread import AsyncioThread
from kwire.ports.files import Buffer
from kwire.remote.errors import RemoteStorageError, RemoteStorageTimeout, RemoteStorageUnavailable
from kwire.remote.keys import check_key, check_prefix, check_range
from kwire.remote.object_store import Found, Part
from kwire.remote.parts import pieces, total
from kwire.remote.s3_answers import OUT_OF_RANGE, meaning, status
from kwire.remote.s3_settings import Patience, client_options, credentials, retry_config, s3_config

if TYPE_CHECKING:
    from obstore import Attributes

T = TypeVar("T")

PIECE_BYTES = 1 << 20
"""Of a file, read at once: on a thread that others' requests need too."""
PARTS_AT_ONCE = 2
"""Of one upload: one goes out while the next is read. Another one waits meanwhile: three are held in memory."""
UPLOADS_AT_ONCE = 4
"""Of one broker; what is held in memory is this times three parts."""
STANDARD = "STANDARD"
"""The storage class of a bucket's objects where none is asked for."""
GRACE_SECONDS = 2.0
"""For a cancelled upload, to be aborted on the server too."""
PAGE_KEYS = 1000
"""Of a listing; S3 gives no more in one answer."""


class S3ObjectStore:
    """Objects in a bucket. The calls run in a thread of their own, the bytes in threads of obstore's."""

    def __init__(self, config: RemoteStorageConfig, prefix: str = "", patience: Patience | None = None) -> None:
        """`prefix` is the folder of the bucket in which all keys are: empty, or with a slash at its end.

        `patience` is that of the configuration, or another.

        Raises ConfigError where AWS's environment variables have something that cannot be.
        """
        self._part_bytes: int = config["storage.s3.multipart.upload.part.size"]
        storage_class = config["storage.s3.storage.class"]
        self._attributes: Attributes | None = {"Storage-Class": storage_class} if storage_class != STANDARD else None
        patience = patience or Patience.of(config)
        self._call_seconds = patience.call_ms / 1000
        bucket, endpoint = config["storage.s3.bucket.name"], config["storage.s3.endpoint.url"]
        self.place = f"s3://{bucket}/{prefix}" + (f" at {endpoint}" if endpoint else "")
        try:
            self._store = S3Store(
                bucket,
                prefix=prefix.rstrip("/") or None,
                config=s3_config(config),
                client_options=client_options(config, patience),
                retry_config=retry_config(patience),
                credential_provider=credentials(config),
            )
        except Exception as error:  # of the environment, which only obstore looks into
            raise ConfigError(f"{self.place}: {str(error).splitlines()[0]}") from error
        self._thread = AsyncioThread("s3")
        self._uploads = trio.CapacityLimiter(UPLOADS_AT_ONCE)

    async def put(self, key: str, parts: Sequence[Part]) -> None:
        check_key(key)
        size = total(parts)
        source = _Source(pieces(parts, PIECE_BYTES))
        calls = 1 if size <= self._part_bytes else 2 + math.ceil(size / self._part_bytes)
        async with self._uploads:
            try:
                await self._call("put", key, self._put, key, source, size, calls=calls, stop=source.stop)
            except RemoteStorageError:
                if source.failure is not None:
                    raise source.failure from None
                raise

    async def get(self, key: str, start: int, end: int) -> bytes:
        check_key(key)
        check_range(start, end)
        if start == end:
            await self.size(key)
            return b""
        _, data = await self._call("get", key, self._get, key, start, end)
        return data

    async def size(self, key: str) -> int:
        check_key(key)
        # Not by HEAD, whose answer does not say whether it is the object that is missing or the bucket.
        size, _ = await self._call("size", key, self._get, key, 0, 1)
        return size

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
        for first in range(0, len(keys), PAGE_KEYS):
            page = list(dict.fromkeys(keys[first : first + PAGE_KEYS]))
            await self._call("delete", page[0], self._delete, page)

    async def list(self, prefix: str) -> AsyncIterator[Found]:
        check_prefix(prefix)
        stream = obstore.list(self._store, prefix.rstrip("/") or None, chunk_size=PAGE_KEYS)
        while (page := await self._call("list", prefix, _next_page, stream)) is not None:
            for one in page:
                yield Found(one["path"], one["size"], int(one["last_modified"].timestamp() * 1000))

    async def close(self) -> None:
        await self._thread.close()

    async def _call(
        self,
        operation: str,
        key: str,
        function: Callable[..., Coroutine[Any, Any, T]],
        *arguments: object,
        calls: int = 1,
        stop: Callable[[], None] | None = None,
    ) -> T:
        """Runs a coroutine function of asyncio's, with the time of so many calls of S3's API.

        Where it is given up, `stop` tells it to end in order.
        """
        seconds = calls * self._call_seconds
        with trio.move_on_after(seconds):
            try:
                if stop is not None:
                    return await self._thread.run_with_grace(stop, GRACE_SECONDS, function, *arguments)
                return await self._thread.run(function, *arguments)
            except RemoteStorageError:
                raise
            except Exception as error:
                raise meaning(error, operation, key) from error
        raise RemoteStorageTimeout(f"{operation} {key}: not done in {seconds:g} s")

    # For asyncio's thread

    async def _put(self, key: str, source: _Source, size: int) -> None:
        await obstore.put_async(
            self._store,
            key,
            source,
            use_multipart=size > self._part_bytes,
            chunk_size=self._part_bytes,
            max_concurrency=PARTS_AT_ONCE,
            attributes=self._attributes,
        )

    async def _get(self, key: str, start: int, end: int) -> tuple[int, bytes]:
        """The size of an object, and its bytes [start, end)."""
        try:
            answer = await obstore.get_async(self._store, key, options={"range": (start, end)})
        except Exception as error:
            if status(error) == OUT_OF_RANGE:
                return 0, b""
            raise
        data = bytes(await answer.bytes_async())
        size = answer.meta["size"]
        if tuple(answer.range) != (start, min(end, size)) or len(data) != min(end, size) - start:
            raise RemoteStorageUnavailable(f"get {key}: asked for bytes from {start} to {end}, got {len(data)} bytes")
        return size, data

    async def _delete(self, keys: Sequence[str]) -> None:
        try:
            await obstore.delete_async(self._store, keys[0] if len(keys) == 1 else keys)
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise


class _Source(Iterator[Buffer]):
    """What obstore takes the bytes of an upload from; whatever is raised here makes it abort the upload."""

    def __init__(self, source: Iterator[Buffer]) -> None:
        self._source = source
        self._stopped = False
        self.failure: OSError | None = None
        """Why there are no more, where a file could not be read."""

    def stop(self) -> None:
        self._stopped = True

    def __next__(self) -> Buffer:
        if self._stopped:
            raise InterruptedError("given up")
        try:
            return next(self._source)
        except OSError as error:
            self.failure = error
            raise


async def _next_page(stream: Any) -> Sequence[Any] | None:
    try:
        return await anext(stream)
    except StopAsyncIteration:
        return None
