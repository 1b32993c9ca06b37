"""From a frame to a response: header, version, body, handler. No I/O here."""

from __future__ import annotations

import logging
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from kwire.broker.context import RequestContext, RequestRefused
from kwire.broker.parked import Parked
from kwire.broker.registry import LoadedApi
from kwire.broker.session import Session
from kwire.ports.transport import Part
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.headers import decode_request_header, response_header
from kwire.protocol.schema import Message

if TYPE_CHECKING:
    from kwire.broker.broker import Broker

logger = logging.getLogger(__name__)

_SIZE: Final = Struct(">i")

Parts = list[Part]


class Call(RequestContext):
    """One request that was understood, and what it takes to answer it."""

    __slots__ = ("api", "correlation_id", "request")

    def __init__(
        self, api: LoadedApi, version: int, client_id: str | None, session: Session, correlation_id: int, request: Any
    ) -> None:
        self.api = api
        self.api_version = version
        self.client_id = client_id
        self.session = session
        self.correlation_id = correlation_id
        self.request = request

    async def run(self, broker: Broker) -> Message | Parked | None:
        """Runs the handler. Whatever fails becomes the response that says so; RequestRefused alone is raised."""
        try:
            response: Message | Parked | None = await self.api.handle(broker, self, self.request)
            return response
        except RequestRefused:
            raise
        except Exception as error:
            return self.failed(broker, error)

    async def finish(self, broker: Broker, parked: Parked) -> Message | Parts:
        """Waits for the response that was not there yet; what fails meanwhile becomes a response likewise."""
        try:
            return await parked.response()
        except RequestRefused:
            raise
        except Exception as error:
            response = self.failed(broker, error)
            assert response is not None
            return response

    def failed(self, broker: Broker, error: Exception) -> Message | None:
        """The response to a request whose handler raised this, which is no RequestRefused. Raises RequestRefused
        alone, where there is no such response."""
        api = self.api
        if isinstance(error, KafkaError):
            return api.failed(self.request, error)
        name = api.api.key.name
        if isinstance(error, OSError):
            broker.limited_log.error(logger, "request failed", "api=%s error=%r", name, str(error))
            return api.failed(self.request, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
        version = self.api_version
        broker.limited_log.error(logger, "request failed", "api=%s version=%d", name, version, exc_info=error)
        return api.failed(self.request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))

    def answer(self, broker: Broker, response: Message | Parts) -> Parts:
        """The response as it goes to the stream: size, header, body. What is so already stays as it is.

        One that does not fit its types (a member id made of a client id of 32,767 bytes is too long for a string)
        becomes, as in Apache Kafka, the response that says UNKNOWN_SERVER_ERROR. EncodeError if that does not fit.
        """
        if isinstance(response, list):
            return response
        version = self.api_version
        header = response_header(self.api.api.key, version, self.correlation_id)
        try:
            body = codec.encode_parts(response, version)
        except codec.EncodeError as error:
            broker.limited_log.error(logger, "response does not fit", "error=%r", str(error))
            failed = self.api.failed(self.request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            body = codec.encode_parts(failed, version)
        if len(body) == 1 and body[0].__class__ is bytes:
            return [b"".join((_SIZE.pack(len(header) + len(body[0])), header, body[0]))]
        size = len(header)
        for part in body:
            size += len(part)
        return [_SIZE.pack(size) + header, *body]


LARGE_FRAME: Final = 1 << 20
"""To decode a larger one may take long: a Produce, too, may be millions of topics without records."""


async def understand_aside(broker: Broker, session: Session, frame: memoryview) -> Call:
    """As `understand`, away from the event loop, where it would keep everybody waiting."""
    return await broker.executor.run(understand, broker, session, frame)


def understand(broker: Broker, session: Session, frame: memoryview) -> Call:
    """Decodes a frame. Raises RequestRefused where Kafka closes the connection: unknown key or version, bad body.

    An ApiVersions request of an unknown version is understood as one whose answer, in version 0, is
    UNSUPPORTED_VERSION with the versions of ApiVersions itself; its body is not read (KIP-511).
    """
    try:
        header, body_at = decode_request_header(frame)
    except codec.MalformedError as error:
        raise RequestRefused(f"malformed request header: {error}") from None
    key, version, correlation_id, client_id = header
    registry = broker.registry
    api = registry.found.get((key, version)) or registry.find(key, version)
    if api is None:
        if key == ApiKey.API_VERSIONS:
            versions = registry.find(key, 0)
            assert versions is not None
            return Call(versions, 0, client_id, session, correlation_id, None)
        raise RequestRefused(f"unsupported api key {key} version {version}")
    try:
        request: Message = codec.decode(api.request_type, version, frame, body_at)
    except codec.MalformedError as error:
        raise RequestRefused(f"malformed {api.api.key.name} v{version} request: {error}") from None
    return Call(api, version, client_id, session, correlation_id, request)
