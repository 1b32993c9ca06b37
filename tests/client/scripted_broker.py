"""A scripted broker, on a network in memory or on a real one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from kwire.client.connection import response_type
from kwire.ports.transport import Stream, StreamClosed, Transport
from kwire.protocol import codec, headers
from kwire.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kwire.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kwire.protocol.schema import Message

PORT = 9092
TOPIC_ID = bytes(range(16))

Answer = Message | None | Callable[[Any], Message | None] | Callable[[Any], Awaitable[Message | None]]


class ScriptedBroker:
    """Answers each request by the script of its type: a response, or a function (async or not) from the request to one.

    None is no answer. A script may be a list, used up from the front, its last item for good. `versions` is what it
    offers, by request type; `requests` is what it got, (version, request) in order.
    """

    def __init__(self, transport: Transport, host: str = "broker", port: int = PORT) -> None:
        self.transport = transport
        self.host, self.port = host, port
        self.scripts: dict[type[Message], Any] = {}
        self.versions: dict[type[Message], tuple[int, int]] = {}
        self.requests: list[tuple[int, Any]] = []
        self.client_ids: list[str | None] = []
        self.connections = 0
        self.drop_next = False
        self.on(ApiVersionsRequest, lambda request: self.offered())

    def on(self, request: type[Message], script: Any, *, versions: tuple[int, int] | None = None) -> None:
        self.scripts[request] = script
        self.versions[request] = versions or (request.min_version, request.max_version)

    def offered(self) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=request.api_key, min_version=low, max_version=high)
                for request, (low, high) in self.versions.items()
            ]
        )

    def got(self, request: type[Message]) -> list[Any]:
        return [seen for _, seen in self.requests if isinstance(seen, request)]

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        listener = await self.transport.listen(self.host, self.port)
        self.port = listener.port
        try:
            task_status.started()
            await listener.serve(self._serve)
        finally:
            listener.close()

    async def _serve(self, stream: Stream) -> None:
        self.connections += 1
        data = b""
        while True:
            try:
                received = await stream.receive(65536)
            except StreamClosed:
                return
            if not received:
                return
            data += received
            while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4], "big"):
                end = 4 + int.from_bytes(data[:4], "big")
                frame, data = data[4:end], data[end:]
                if self.drop_next:
                    self.drop_next = False
                    return
                await self._answer(stream, frame)

    async def _answer(self, stream: Stream, frame: bytes) -> None:
        header, start = headers.decode_request_header(frame)
        kind = next(request for request in self.scripts if request.api_key == header.api_key)
        version = header.api_version
        self.client_ids.append(header.client_id)
        low, high = self.versions[kind]
        if not low <= version <= high:
            assert kind is ApiVersionsRequest, f"{kind.__name__} in version {version}"
            response: Message | None = self.offered()
            response.error_code = 35  # type: ignore[attr-defined]
            version = 0
        else:
            request = codec.decode(kind, version, frame[start:])
            self.requests.append((version, request))
            script = self.scripts[kind]
            if isinstance(script, list):
                script = script.pop(0) if len(script) > 1 else script[0]
            response = script
            if callable(script):
                response = script(request)
                if isinstance(response, Awaitable):
                    response = await response
        if response is not None:
            assert isinstance(response, response_type(kind))
            head = headers.response_header(header.api_key, version, header.correlation_id)
            body = codec.encode(response, version)
            await stream.send([(len(head) + len(body)).to_bytes(4, "big"), head, body])


def metadata(
    leaders: dict[str, list[int]], brokers: dict[int, tuple[str, int]] | None = None, **details: Any
) -> MetadataResponse:
    """A metadata response: the leader of each partition, by topic."""
    return MetadataResponse(
        cluster_id="cluster",
        controller_id=1,
        brokers=[
            MetadataResponseBroker(node_id=node, host=host, port=port)
            for node, (host, port) in (brokers or {1: ("broker", PORT)}).items()
        ],
        topics=[
            MetadataResponseTopic(
                name=name,
                topic_id=details.get("topic_id", TOPIC_ID),
                error_code=details.get("error_code", 0),
                partitions=[
                    MetadataResponsePartition(partition_index=index, leader_id=leader, replica_nodes=[1], isr_nodes=[1])
                    for index, leader in enumerate(partitions)
                ],
            )
            for name, partitions in leaders.items()
        ],
    )
