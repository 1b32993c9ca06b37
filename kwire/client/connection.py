"""One connection to one broker: requests are pipelined, responses found by their correlation id.

There is no task in the background. Whoever waits for a response reads; when its own has come, the next who waits takes
over. A caller that is cancelled leaves its request behind, and whoever reads throws the response away. After a time-out
the connection is closed: a broker answers in order, so that every later response would be late as well.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import trio

import kwire
from kwire.client.addresses import show_address
from kwire.client.errors import BrokerUnreachable, ConnectionLost, ProtocolViolation, RequestTimeout, UnsupportedApi
from kwire.client.frames import FrameReader
from kwire.ports.transport import Stream, StreamClosed, Transport
from kwire.protocol import codec, headers
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from kwire.protocol.schema import Message

CONNECT_TIMEOUT = 10.0
REQUEST_TIMEOUT = 30.0
"""Seconds."""

MAX_RESPONSE_BYTES = 256 * 1024 * 1024
"""No response may be larger: brokers keep fetches below 55 MiB unless told otherwise."""

_LAST_CORRELATION_ID = 0x7FFFFFFF


class _Pending:
    """A request whose response is to come."""

    __slots__ = ("abandoned", "correlation_id", "frame", "wake")

    def __init__(self, correlation_id: int) -> None:
        self.correlation_id = correlation_id
        self.frame: memoryview | None = None
        self.abandoned = False
        self.wake = trio.Event()


class Connection:
    """An open connection, made by `open`. Any number of tasks may call at the same time."""

    def __init__(
        self,
        stream: Stream,
        host: str,
        port: int,
        *,
        client_id: str = "kwire",
        request_timeout: float = REQUEST_TIMEOUT,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self.api_versions: Mapping[int, tuple[int, int]] = {}
        """What the broker offers: API key to (lowest, highest) version."""
        self._stream = stream
        self._frames = FrameReader(stream, max_response_bytes)
        self._request_timeout = request_timeout
        self._sending = trio.Lock()
        self._pending: deque[_Pending] = deque()
        self._reading = False
        self._last_id = -1
        self._failure: str | None = None

    @classmethod
    async def open(
        cls,
        transport: Transport,
        host: str,
        port: int,
        *,
        client_id: str = "kwire",
        connect_timeout: float = CONNECT_TIMEOUT,
        request_timeout: float = REQUEST_TIMEOUT,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> Connection:
        """Connects and asks for the API versions. Time-outs are seconds.

        BrokerUnreachable if no connection comes about, ConnectionLost or ProtocolViolation if it is no Kafka broker.
        """
        address = show_address(host, port)
        try:
            with trio.fail_after(connect_timeout):
                stream = await transport.connect(host, port)
        except trio.TooSlowError:
            raise BrokerUnreachable(f"{address} did not answer within {connect_timeout:g} s") from None
        except OSError as error:
            raise BrokerUnreachable(f"{address}: {error.strerror or error}") from error
        connection = cls(
            stream,
            host,
            port,
            client_id=client_id,
            request_timeout=request_timeout,
            max_response_bytes=max_response_bytes,
        )
        try:
            await connection._negotiate()
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def closed(self) -> bool:
        return self._failure is not None

    def close(self) -> None:
        """Closes at once; whoever waits for a response gets ConnectionLost."""
        self._fail("closed by this side")

    def version(self, request: type[Message], at_most: int | None = None) -> int:
        """The highest version that both sides know, not above `at_most`. UnsupportedApi if there is none."""
        name = request.__name__.removesuffix("Request")
        if request.api_key not in self.api_versions:
            raise UnsupportedApi(f"the broker at {show_address(self.host, self.port)} has no API {name}")
        lowest, highest = self.api_versions[request.api_key]
        version = min(highest, request.max_version if at_most is None else min(at_most, request.max_version))
        if version < max(lowest, request.min_version):
            raise UnsupportedApi(
                f"the broker at {show_address(self.host, self.port)} has {name} in versions {lowest} to {highest}, "
                f"this client in {request.min_version} to {at_most or request.max_version}"
            )
        return version

    def require(self, request: type[Message], version: int) -> None:
        """UnsupportedApi unless the request can be sent in this version or a later one."""
        if self.version(request) < version:
            raise UnsupportedApi(
                f"the broker at {show_address(self.host, self.port)} is too old: this needs "
                f"{request.__name__.removesuffix('Request')} version {version}"
            )

    async def call(self, request: Message, version: int | None = None, *, timeout: float | None = None) -> Any:
        """Sends a request and returns the response message (for a FetchRequest a FetchResponse).

        The version is the highest both know unless given, `timeout` (seconds) the connection's unless given: a request
        that may wait at the broker needs its waiting time on top. Raises RequestTimeout, ConnectionLost,
        ProtocolViolation, UnsupportedApi. Error codes inside the response are the caller's to look at.
        """
        if version is None:
            version = self.version(type(request))
        seconds = self._request_timeout if timeout is None else timeout
        with trio.move_on_after(seconds):
            pending = await self._send(request, version)
            try:
                frame = await self._response(pending)
            except BaseException:
                pending.abandoned = True
                raise
            finally:
                self._wake_next()
            return self._decode(request, version, frame)
        text = f"no {_name(request)} response within {seconds:g} s"
        self._fail(text)
        raise RequestTimeout(f"{show_address(self.host, self.port)}: {text}")

    async def send(self, request: Message, version: int | None = None) -> None:
        """Sends a request that has no response: Produce with acks 0."""
        await self._send(request, self.version(type(request)) if version is None else version, answered=False)

    async def _negotiate(self) -> None:
        request = ApiVersionsRequest(client_software_name="kwire", client_software_version=kwire.__version__)
        version = ApiVersionsRequest.max_version
        while True:
            response: ApiVersionsResponse = await self.call(request, version)
            offered = {item.api_key: (item.min_version, item.max_version) for item in response.api_keys}
            if response.error_code == ErrorCode.UNSUPPORTED_VERSION and version > 0:
                # The broker is older: it says so in version 0, and (since Kafka 2.4) which versions it has.
                version = min(offered.get(ApiVersionsRequest.api_key, (0, 0))[1], version - 1)
                continue
            if response.error_code:
                raise ProtocolViolation(
                    f"{show_address(self.host, self.port)} answered ApiVersions with {_error_name(response.error_code)}"
                )
            self.api_versions = offered
            return

    async def _send(self, request: Message, version: int, *, answered: bool = True) -> _Pending:
        body = codec.encode_parts(request, version)
        async with self._sending:
            if self._failure is not None:
                raise self._lost()
            self._last_id = 0 if self._last_id == _LAST_CORRELATION_ID else self._last_id + 1
            pending = _Pending(self._last_id)
            header = headers.encode_request_header(
                headers.RequestHeader(request.api_key, version, pending.correlation_id, self.client_id)
            )
            size = len(header) + sum(map(len, body))
            if answered:
                self._pending.append(pending)
            try:
                await self._stream.send([size.to_bytes(4, "big") + header, *body])
            except StreamClosed as error:
                self._fail(str(error))
                raise self._lost() from error
            except BaseException:  # cancelled: the broker has a part of a request now
                self._fail("a request was cancelled while it was sent")
                raise
        return pending

    async def _response(self, pending: _Pending) -> memoryview:
        while pending.frame is None:
            if self._failure is not None:
                raise self._lost()
            if self._reading:
                await pending.wake.wait()
                pending.wake = trio.Event()
            else:
                await self._read_until(pending)
        return pending.frame

    async def _read_until(self, mine: _Pending) -> None:
        self._reading = True
        try:
            while mine.frame is None:
                frame = await self._frames.read()
                if not self._pending:
                    raise ProtocolViolation("a response without a request")
                first = self._pending.popleft()
                correlation_id = int.from_bytes(frame[:4], "big", signed=True)
                if correlation_id != first.correlation_id:
                    raise ProtocolViolation(
                        f"the response to request {first.correlation_id} was due, that to {correlation_id} came"
                    )
                first.frame = frame
                first.wake.set()
        except StreamClosed as error:
            self._fail(str(error))
        except ProtocolViolation as error:
            self._fail(str(error))
            raise ProtocolViolation(f"{show_address(self.host, self.port)}: {error}") from None
        finally:
            self._reading = False

    def _wake_next(self) -> None:
        """Lets the next who waits read, where nobody does: for whoever read, or was woken to do so, and leaves."""
        if self._reading:
            return
        for pending in self._pending:
            if not pending.abandoned:
                pending.wake.set()
                return

    def _decode(self, request: Message, version: int, frame: memoryview) -> Any:
        response = response_type(type(request))
        try:
            body = frame[headers.decode_response_header(request.api_key, version, frame)[1] :]
            if response is ApiVersionsResponse and frame[4:6] == _UNSUPPORTED_VERSION:
                version = 0
            return codec.decode(response, version, body)
        except codec.MalformedError as error:
            text = f"cannot read its {_name(request)} response in version {version}: {error}"
            self._fail(text)
            raise ProtocolViolation(f"{show_address(self.host, self.port)}: {text}") from error

    def _fail(self, reason: str) -> None:
        if self._failure is not None:
            return
        self._failure = reason
        self._stream.close()
        for pending in self._pending:
            pending.wake.set()
        self._pending.clear()

    def _lost(self) -> ConnectionLost:
        return ConnectionLost(f"connection to {show_address(self.host, self.port)} lost: {self._failure}")


_UNSUPPORTED_VERSION = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


def response_type(request: type[Message]) -> type[Message]:
    """The response that belongs to a request; both are declared in one module."""
    name = request.__name__.removesuffix("Request") + "Response"
    found: type[Message] = getattr(sys.modules[request.__module__], name)
    return found


def _name(request: Message) -> str:
    return type(request).__name__.removesuffix("Request")


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
