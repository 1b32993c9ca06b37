"""Topic creation over a plain blocking socket: callable from any test, whatever event loop it runs in."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from kwire.client.metadata import check
from kwire.protocol import codec
from kwire.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from kwire.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kwire.testing.process import setting_text

TIMEOUT = 30.0
"""Seconds."""
VERSION = 5
"""Of CreateTopics: served by every Kafka since 2.4, so that it need not be negotiated."""


def create_topic(bootstrap: str, name: str, partitions: int, configs: Mapping[str, object]) -> None:
    """Creates a topic with one replica and returns when it can be used; raises KafkaError where that is refused."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=setting_text(value)) for key, value in configs.items()],
    )
    answer = _call(bootstrap, CreateTopicsRequest(topics=[topic], timeout_ms=int(TIMEOUT * 1000)))
    (result,) = answer.topics
    check(result.error_code, result.error_message)


def _call(bootstrap: str, message: CreateTopicsRequest) -> CreateTopicsResponse:
    """One request and its response, on a connection of their own."""
    api_key = message.api_key
    request = encode_request_header(RequestHeader(api_key, VERSION, 1, "kwire-testing")) + codec.encode(
        message, VERSION
    )
    host, _, port = bootstrap.rpartition(":")
    with (
        socket.create_connection((host.strip("[]"), int(port)), TIMEOUT) as connection,
        connection.makefile("rb") as responses,
    ):
        connection.sendall(len(request).to_bytes(4) + request)
        response = responses.read(int.from_bytes(responses.read(4)))
    if not response:
        raise ConnectionError(f"{bootstrap} closed the connection: is it a Kafka listener without TLS?")
    _, body = decode_response_header(message.api_key, VERSION, response)
    return codec.decode(CreateTopicsResponse, VERSION, memoryview(response)[body:])
