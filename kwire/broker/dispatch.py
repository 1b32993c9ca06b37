"""From a frame to a response: header, version, body, handler. No I/O here."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from struct import Struct
from typing import TYPE_CHECKING, Any

from kwire.broker.context import RequestContext, RequestRefused, Session
from kwire.broker.parked import Parked
from kwire.broker.registry import LoadedApi
from kwire.ports.transport import Part
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.headers import decode_request_header, response_header
from kwire.protocol.schema import Message

if TYPE_CHECKING:
    from kwire.broker.broker import Broker

logger = logging.getLogger(__name__)

_SIZE = Struct(">i")

Parts = list[Part]


class Call:
    """One request that was understood, and what it takes to answer it."""

    __slots__ = ("_api", "_correlation_id", "context", "patient", "request")

    def __init__(self, api: LoadedApi, context: RequestContext, correlation_id: int, request: object) -> None:
        self._api = api
        self.context = context
        self._correlation_id = correlation_id
        self.request = request
        self.patient = api.api.patient
        """As in the registry."""

    def start(self, broker: Broker) -> Awaitable[Message | Parked | None]:
        """Runs the handler; returns a response message, a Parked one, or None where no answer is due (acks=0).

        Whatever fails becomes the response that says so; RequestRefused alone is raised.
        """
        return self._or_failed(broker, self._api.handle(broker, self.context, self.request))

    def finish(self, broker: Broker, parked: Parked) -> Awaitable[Message]:
        """Waits for the response that was not there yet; what fails meanwhile becomes a response likewise."""
        return self._or_failed(broker, parked.response())

    async def _or_failed(self, broker: Broker, work: Awaitable[Any]) -> Any:
        try:
            return await work
        except RequestRefused:
            raise
        except KafkaError as error:
            return self._api.failed(self.request, error)
        except OSError as error:
            broker.limited_log.error(logger, "request failed", "api=%s error=%r", self._api.api.key.name, str(error))
            return self._api.failed(self.request, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
        except Exception:
            name, version = self._api.api.key.name, self.context.api_version
            broker.limited_log.error(logger, "request failed", "api=%s version=%d", name, version, exc_info=True)
            return self._api.failed(self.request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))

    def answer(self, broker: Broker, response: Message) -> Parts:
        """The response as it goes to the stream: size, header, body.

        One that does not fit its types (a member id made of a client id of 32,767 bytes is too long for a string)
        becomes, as in Apache Kafka, the response that says UNKNOWN_SERVER_ERROR. EncodeError if that does not fit.
        """
        version = self.context.api_version
        header = response_header(self._api.api.key, version, self._correlation_id)
        try:
            body = codec.encode_parts(response, version)
        except codec.EncodeError as error:
            broker.limited_log.error(logger, "response does not fit", "error=%r", str(error))
            failed = self._api.failed(self.request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            body = codec.encode_parts(failed, version)
        if len(body) == 1 and body[0].__class__ is bytes:
            return [b"".join((_SIZE.pack(len(header) + len(body[0])), header, body[0]))]
        size = len(header)
        for part in body:
            size += len(part)
        return [_SIZE.pack(size) + header, *body]


def understand(broker: Broker, session: Session, frame: memoryview) -> Call:
    """Decodes a frame. Raises RequestRefused where Kafka closes the connection: unknown key or version, bad body.

    An ApiVersions request of an unknown version is understood as one whose answer, in version 0, is
    UNSUPPORTED_VERSION with the versions of ApiVersions itself; its body is not read (KIP-511).
    """
    try:
        header, body_at = decode_request_header(frame)
    except codec.MalformedError as error:
        raise RequestRefused(f"malformed request header: {error}") from None
    key, version = header.api_key, header.api_version
    api = broker.registry.find(key, version)
    if api is None:
        if key == ApiKey.API_VERSIONS:
            versions = broker.registry.find(key, 0)
            assert versions is not None
            return Call(versions, RequestContext(0, header.client_id, session), header.correlation_id, None)
        raise RequestRefused(f"unsupported api key {key} version {version}")
    try:
        request: Message = codec.decode(api.request_type, version, frame, body_at)
    except codec.MalformedError as error:
        raise RequestRefused(f"malformed {api.api.key.name} v{version} request: {error}") from None
    return Call(api, RequestContext(version, header.client_id, session), header.correlation_id, request)
