"""The headers before every request and response.

    request   api_key int16, api_version int16, correlation_id int32, client_id nullable string [, tagged fields]
    response  correlation_id int32 [, tagged fields]

The tagged fields are there where the (API, version) is flexible. One exception: the response to ApiVersions never has
them, since a client that asks does not know yet what the broker speaks.
"""

from __future__ import annotations

from struct import Struct, error
from typing import NamedTuple

from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec.errors import EncodeError, MalformedError
from kwire.protocol.codec.runtime import skip_tags
from kwire.protocol.schema import NEVER

_REQUEST = Struct(">hhih")
_CORRELATION_ID = Struct(">i")
_new = tuple.__new__
"""Makes a named tuple in one call of C."""

_FLEXIBLE_FROM = {int(key): api.flexible_from for key, api in APIS.items()}
_RESPONSE_TAGS_FROM = {**_FLEXIBLE_FROM, int(ApiKey.API_VERSIONS): NEVER}


class RequestHeader(NamedTuple):
    """Who asks for what. Kafka takes a `client_id` of None for an empty one."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(frame: bytes | memoryview) -> tuple[RequestHeader, int]:
    """The header at the start of a frame (without its length), and where the body begins.

    MalformedError if it is cut short, or its API key unknown. The version may be any: whether it is offered is asked
    later, and a version beyond all known ones has the header of the newest.
    """
    try:
        api_key, version, correlation_id, length = _REQUEST.unpack_from(frame)
        end = 10
        client_id = None
        if length >= 0:
            end += length
            if end > len(frame):
                raise MalformedError(f"client id of {length} bytes in a frame of {len(frame)}")
            client_id = str(frame[10:end], "utf-8", "replace")
        if version >= _FLEXIBLE_FROM[api_key]:
            end = skip_tags(frame, end) if frame[end] else end + 1
    except KeyError:
        raise MalformedError(f"unknown API key {api_key}") from None
    except (error, IndexError):
        raise MalformedError(f"a request header is cut short: {len(frame)} bytes") from None
    return _new(RequestHeader, (api_key, version, correlation_id, client_id)), end


def encode_request_header(header: RequestHeader) -> bytes:
    """The bytes before a request's body, without the frame's length."""
    client_id = b"" if header.client_id is None else header.client_id.encode()
    length = -1 if header.client_id is None else len(client_id)
    tags = b"\0" if header.api_version >= _FLEXIBLE_FROM[header.api_key] else b""
    try:
        return _REQUEST.pack(header.api_key, header.api_version, header.correlation_id, length) + client_id + tags
    except error as cause:
        raise EncodeError(f"{header}: {cause}") from cause


def response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """The bytes before a response's body, without the frame's length."""
    if version >= _RESPONSE_TAGS_FROM[api_key]:
        return _CORRELATION_ID.pack(correlation_id) + b"\0"
    return _CORRELATION_ID.pack(correlation_id)


def decode_response_header(api_key: int, version: int, frame: bytes | memoryview) -> tuple[int, int]:
    """The correlation id at the start of a response to (`api_key`, `version`), and where its body begins.

    MalformedError if it is cut short.
    """
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        return correlation_id, skip_tags(frame, 4) if version >= _RESPONSE_TAGS_FROM[api_key] else 4
    except (error, IndexError):
        raise MalformedError(f"a response header is cut short: {len(frame)} bytes") from None
