"""ApiVersions, versions that are not offered, keys that do not exist, FindCoordinator."""

from __future__ import annotations

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import CLOSED, Side
from compat_tests.oracle.wire import Closed
from kwire.broker.registry import APIS, Api
from kwire.protocol import codec
from kwire.protocol.headers import RequestHeader, encode_request_header
from kwire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest

pytestmark = pytest.mark.xdist_group("oracle")

API_VERSIONS = 18
TO_COME = ("APIs to come", "features of Apache Kafka alone")


def named(software: str, version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=software, client_software_version=version)


def test_software_names(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in (0, 1, 2, 3, 4):
            for name in ("kwire", "a", "a.b-c", "A1", "", " ", "-a", "a-", ".a", "a.", "a_b", "a b", "ü", "a\n", "1"):
                if version < 3 and name:
                    continue
                request = named(name) if version >= 3 else ApiVersionsRequest()
                side.ask(request, version, note=repr(name))
                if version >= 3:
                    side.ask(named("kwire", name), version, note=f"version {name!r}")

    both.agree(scenario, *TO_COME)


def test_versions_to_come(both: Both) -> None:
    """Answered in version 0, whatever the body."""

    def scenario(side: Side) -> None:
        for version in (5, 6, 100, 32767):
            for body in (b"", b"\0", b"\x02a\x02b\0", bytes(range(256))):
                header = RequestHeader(API_VERSIONS, version, 77, "oracle")
                side.wire.send_frame(encode_request_header(header) + body)
                frame = side.wire.receive_frame()
                response = codec.decode(ApiVersionsResponse, 0, memoryview(frame)[4:])
                side.record_response(f"ApiVersions v{version} with {len(body)} bytes", response)

    both.agree(scenario)


def answered(side: Side, frame: bytes) -> str:
    """Whether the broker says anything to a frame before it closes the connection."""
    try:
        side.wire.send_frame(frame)
        side.wire.receive_frame()
    except Closed:
        side.close()
        return CLOSED
    return "answered"


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.module)
def test_versions_that_are_not_offered(both: Both, api: Api) -> None:
    def scenario(side: Side) -> None:
        for version in (-1, api.least - 1, api.greatest + 1, 32767):
            if version == -1 or (api.key == API_VERSIONS and version > api.greatest):
                continue
            header = encode_request_header(RequestHeader(api.key, version, 5, "oracle"))
            side.record(f"{api.module} v{version}", answered(side, header + bytes(100)))

    both.agree(scenario)


def test_keys_that_do_not_exist(both: Both) -> None:
    def scenario(side: Side) -> None:
        for key in (-1, 93, 1000, 32767):
            for version in (0, 1, 9):
                frame = key.to_bytes(2, signed=True) + version.to_bytes(2) + (7).to_bytes(4) + b"\0\x01a" + bytes(50)
                side.record(f"key {key} v{version}", answered(side, frame))

    both.agree(scenario)


def test_client_ids(both: Both) -> None:
    def scenario(side: Side) -> None:
        for client_id in (None, "", "a", "ü" * 100, "\n"):
            for version in (0, 3, 4):
                header = encode_request_header(RequestHeader(API_VERSIONS, version, 5, client_id))
                body = codec.encode(named("kwire") if version >= 3 else ApiVersionsRequest(), version)
                side.record(f"{client_id!r} v{version}", answered(side, header + body))

    both.agree(scenario)


def test_keys_of_coordinators_that_do_not_exist(both: Both) -> None:
    """Of those that do, Apache Kafka makes the topics: `test_every_version` has one."""

    def scenario(side: Side) -> None:
        for version in (1, 3, 4, 5, 6):
            for key_type in (2, 3, 7, -1):
                if key_type == 2 and version == 6:
                    continue
                request = FindCoordinatorRequest(key_type=key_type)
                if version >= 4:
                    request.coordinator_keys = ["a", "b"]
                else:
                    request.key = "a"
                side.ask(request, version, note=f"type {key_type}")
        side.ask(FindCoordinatorRequest(coordinator_keys=[]), 4, note="none")

    both.agree(scenario)
