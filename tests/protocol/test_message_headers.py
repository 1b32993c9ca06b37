"""Request and response headers, those that no captured frame holds above all."""

from __future__ import annotations

import pytest

from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec import EncodeError, MalformedError
from kwire.protocol.codec.build import api_messages
from kwire.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    response_header,
)


@pytest.mark.parametrize("client_id", [None, "", "client", "ü" * 1000])
@pytest.mark.parametrize(("api_key", "version"), [(18, 0), (18, 3), (0, 8), (0, 9), (1, 18), (17, 1)])
def test_a_request_header_comes_back(api_key: int, version: int, client_id: str | None) -> None:
    header = RequestHeader(api_key, version, -5, client_id)
    frame = encode_request_header(header)
    for buffer in (frame, frame + b"body", memoryview(frame)):
        assert decode_request_header(buffer) == (header, len(frame))


def test_a_flexible_request_header_ends_with_tagged_fields() -> None:
    assert encode_request_header(RequestHeader(0, 8, 1, "c")) == b"\0\0\0\x08\0\0\0\x01\0\x01c"
    assert encode_request_header(RequestHeader(0, 9, 1, "c")) == b"\0\0\0\x09\0\0\0\x01\0\x01c\0"


def test_unknown_tagged_fields_of_a_header_are_skipped() -> None:
    frame = encode_request_header(RequestHeader(0, 9, 1, "c"))[:-1] + b"\x02\x00\x03abc\x80\x01\x01z" + b"body"
    assert decode_request_header(frame) == (RequestHeader(0, 9, 1, "c"), len(frame) - 4)
    assert decode_response_header(0, 9, b"\0\0\0\x07\x01\x05\x01abody") == (7, 8)


@pytest.mark.parametrize("version", [5, 100, 32767])
def test_a_version_beyond_all_has_the_newest_header(version: int) -> None:
    header = RequestHeader(ApiKey.API_VERSIONS, version, 1, "c")
    assert decode_request_header(encode_request_header(header) + b"?") == (header, 12)


def test_a_negative_version_has_the_oldest_header() -> None:
    header = RequestHeader(ApiKey.API_VERSIONS, -1, 1, "c")
    assert decode_request_header(b"\0\x12\xff\xff\0\0\0\x01\0\x01c") == (header, 11)


def test_the_response_to_api_versions_never_has_tagged_fields() -> None:
    assert response_header(ApiKey.API_VERSIONS, 4, 9) == b"\0\0\0\x09"
    assert decode_response_header(ApiKey.API_VERSIONS, 4, b"\0\0\0\x09\0") == (9, 4)
    assert response_header(ApiKey.METADATA, 13, 9) == b"\0\0\0\x09\0"
    assert response_header(ApiKey.METADATA, 8, 9) == b"\0\0\0\x09"


@pytest.mark.parametrize("api_key", [-1, 4, 7, 93, 32767])
def test_an_unknown_api_key_is_malformed(api_key: int) -> None:
    with pytest.raises(MalformedError, match=f"unknown API key {api_key}"):
        decode_request_header(api_key.to_bytes(2, "big", signed=True) + bytes(8))


def test_a_header_cut_short_is_malformed() -> None:
    frame = encode_request_header(RequestHeader(0, 9, 1, "client"))[:-1] + b"\x01\x05\x02ab"
    for length in range(len(frame)):
        with pytest.raises(MalformedError):
            decode_request_header(frame[:length])
    for length in range(len(b"\0\0\0\x07\x01\x05\x01a")):
        with pytest.raises(MalformedError):
            decode_response_header(0, 9, b"\0\0\0\x07\x01\x05\x01a"[:length])


def test_a_header_that_does_not_fit_is_refused() -> None:
    for header in (RequestHeader(0, 9, 2**31, "c"), RequestHeader(0, 9, 1, "c" * 0x8000)):
        with pytest.raises(EncodeError):
            encode_request_header(header)


def test_the_table_of_apis_says_what_the_messages_say() -> None:
    names = {}
    for message in api_messages():
        name = message.__name__.removesuffix("Request").removesuffix("Response")
        names[message.api_key] = name
        assert APIS[message.api_key] == (name, message.flexible_from)
    assert set(names) == set(APIS) == set(ApiKey)
