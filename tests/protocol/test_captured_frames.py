"""Real frames between stock clients and Apache Kafka 4.3.1 decode, and encode back byte for byte.

Each line of the file is one request and its response, in hex without the length that stands before a frame.
"""

from __future__ import annotations

import gzip
import json
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kwire.protocol import codec, headers
from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec import reference


class Exchange(NamedTuple):
    label: str
    api_key: int
    version: int
    request: bytes
    response: bytes


def _exchange(line: str) -> Exchange:
    item = json.loads(line)
    response = bytes.fromhex(item["resp"])
    assert len(response) == item["resp_len"], "this response was cut when it was captured"
    return Exchange(item["label"], item["api"], item["ver"], bytes.fromhex(item["req"]), response)


with gzip.open(Path(__file__).with_name("data") / "frames.jsonl.gz", "rt") as lines:
    EXCHANGES = [_exchange(line) for line in lines]

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
        request = codec.decode(request_type, exchange.version, exchange.request, start)
        encoded = headers.encode_request_header(header) + codec.encode(request, exchange.version)
        assert encoded + _surplus(exchange) == exchange.request, exchange.label
        assert reference.decode(request_type, exchange.version, exchange.request[start:]) == request

        correlation_id, start = headers.decode_response_header(api_key, exchange.version, exchange.response)
        assert correlation_id == header.correlation_id
        response = codec.decode(response_type, exchange.version, exchange.response, start)
        head = headers.response_header(api_key, exchange.version, correlation_id)
        assert head + codec.encode(response, exchange.version) == exchange.response, exchange.label
        assert reference.decode(response_type, exchange.version, exchange.response[start:]) == response


def _surplus(exchange: Exchange) -> bytes:
    """What stands behind the message: librdkafka 2.16 ends this one request with a byte too many."""
    if exchange.api_key == ApiKey.ALTER_USER_SCRAM_CREDENTIALS and "librdkafka" in exchange.label:
        return b"\0"
    return b""
