"""Real frames between stock clients and Apache Kafka 4.3.1 decode, and encode back byte for byte."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from kwire.protocol import codec, headers
from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec import reference
from tests.protocol.captured import EXCHANGES

API_KEYS = sorted({exchange.api_key for exchange in EXCHANGES})


def _types(api_key: int) -> tuple[Any, Any]:
    name = APIS[api_key].name
    module = import_module(f"kwire.protocol.messages.{ApiKey(api_key).name.lower()}")
    return getattr(module, f"{name}Request"), getattr(module, f"{name}Response")


def test_the_capture_is_whole() -> None:
    assert len(EXCHANGES) == 733
    assert len(API_KEYS) == 68


@pytest.mark.parametrize("api_key", API_KEYS, ids=[APIS[key].name for key in API_KEYS])
def test_frames_decode_and_encode_back(api_key: int) -> None:
    request_type, response_type = _types(api_key)
    for exchange in EXCHANGES:
        if exchange.api_key != api_key:
            continue
        header, start = headers.decode_request_header(exchange.request)
        assert (header.api_key, header.api_version) == (api_key, exchange.version)
        request, end = codec.decode_prefix(request_type, exchange.version, exchange.request, start)
        encoded = headers.encode_request_header(header) + codec.encode(request, exchange.version)
        assert encoded + exchange.request[end:] == exchange.request, exchange.label
        assert reference.decode(request_type, exchange.version, exchange.request[start:]) == request

        correlation_id, start = headers.decode_response_header(api_key, exchange.version, exchange.response)
        assert correlation_id == header.correlation_id
        response, end = codec.decode_prefix(response_type, exchange.version, exchange.response, start)
        encoded = headers.response_header(api_key, exchange.version, correlation_id)
        encoded += codec.encode(response, exchange.version)
        assert encoded + exchange.response[end:] == exchange.response, exchange.label
        assert reference.decode(response_type, exchange.version, exchange.response[start:]) == response


def test_one_frame_goes_on_behind_its_message() -> None:
    """librdkafka 2.16 ends AlterUserScramCredentials with two empty sections of tagged fields where there is one.

    Its code for this request writes the section, and then, as for every flexible request, so does what sends it
    (`rd_kafka_buf_finalize`). Kafka, too, leaves unread what stands behind a message.
    """
    rests = []
    for exchange in EXCHANGES:
        request_type, response_type = _types(exchange.api_key)
        _, start = headers.decode_request_header(exchange.request)
        _, end = codec.decode_prefix(request_type, exchange.version, exchange.request, start)
        rests.append(exchange.request[end:])
        _, start = headers.decode_response_header(exchange.api_key, exchange.version, exchange.response)
        _, end = codec.decode_prefix(response_type, exchange.version, exchange.response, start)
        rests.append(exchange.response[end:])
    assert b"".join(rests) == b"\0"
