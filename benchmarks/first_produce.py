"""The smallest producer there is: a socket and two requests, for measuring when a broker first acknowledges."""

from __future__ import annotations

import socket
import time
from typing import TypeVar

from benchmarks.frames import decoded, encoded, received
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from kwire.protocol.schema import Message

_METADATA_VERSION = 9
_PRODUCE_VERSION = 9
_PAUSE = 0.005

M = TypeVar("M", bound=Message)


def produce_first(host: str, port: int, topic: str, deadline: float) -> None:
    """Returns when one record to a topic that did not exist is acknowledged. TimeoutError after `deadline`."""
    batch = build_batch([Record(0, int(time.time() * 1000), None, b"first", [])])
    produce = ProduceRequest(
        acks=1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])],
    )
    metadata = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host, port), timeout=5) as connection:
                while time.monotonic() < deadline:
                    known = _call(connection, _METADATA_VERSION, metadata, MetadataResponse)
                    if known.topics[0].error_code == 0:
                        told = _call(connection, _PRODUCE_VERSION, produce, ProduceResponse)
                        if told.responses[0].partition_responses[0].error_code == 0:
                            return
                    time.sleep(_PAUSE)
        except OSError:
            time.sleep(_PAUSE)
    raise TimeoutError(f"no acknowledgement from {host}:{port}")


def _call(connection: socket.socket, version: int, request: Message, response_type: type[M]) -> M:
    connection.sendall(encoded(request, version))
    return decoded(response_type, version, received(connection))
