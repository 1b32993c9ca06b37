"""ApiVersions: what is listed, versions to come, names of client software."""

from __future__ import annotations

from struct import pack

import pytest

from kwire.broker.registry import APIS
from kwire.metadata.changes import FeatureLevelsChanged
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode
from kwire.protocol.headers import RequestHeader, encode_request_header
from kwire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.scene import HOST, PORT, Scene, running

VERSIONS = range(5)


def named(software: str = "test", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=software, client_software_version=version)


async def answer(scene: Scene, version: int, body: bytes) -> bytes:
    """Sends an ApiVersions request on a connection of its own; what follows the correlation id."""
    stream = await scene.network.transport("client").connect(HOST, PORT)
    frame = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, version, 77, "test")) + body
    await stream.send([pack(">i", len(frame)) + frame])
    data = b""
    while len(data) < 8 or len(data) < 4 + int.from_bytes(data[:4]):
        received = await stream.receive(65536)
        assert received, "the connection was closed"
        data += received
    stream.close()
    assert data[4:8] == pack(">i", 77)
    return data[8:]


@pytest.mark.parametrize("version", VERSIONS)
async def test_everything_offered_is_listed(version: int, autojump_clock) -> None:
    async with running() as scene:
        response = await scene.call(named(), version)
        assert response.error_code == 0
        listed = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        offered = {int(api.key): (api.least, api.greatest) for api in APIS}
        assert listed == offered | {int(ApiKey.PRODUCE): (0, 13)}


@pytest.mark.parametrize("version", [3, 4])
async def test_features(version: int, autojump_clock) -> None:
    """Clients before v4 take no feature whose least level is 0 (KIP-1022); level 0 is not told."""
    async with running() as scene:
        before = await scene.call(named(), version)
        supported = [(each.name, each.min_version, each.max_version) for each in before.supported_features]
        assert supported == ([] if version == 3 else [("group.version", 0, 1), ("transaction.version", 0, 2)])
        # What it stands for is there.
        assert ApiKey.CONSUMER_GROUP_HEARTBEAT in {each.api_key for each in before.api_keys}
        assert finalized(before) == {"group.version": (1, 1), "transaction.version": (2, 2)}
        assert before.finalized_features_epoch == scene.broker.store.image.version
        await scene.broker.store.commit([FeatureLevelsChanged({"group.version": 0, "transaction.version": 1})])
        after = await scene.call(named(), version)
        assert after.supported_features == before.supported_features
        assert finalized(after) == {"transaction.version": (1, 1)}
        assert after.finalized_features_epoch > before.finalized_features_epoch
        assert not after.zk_migration_ready


def finalized(response: ApiVersionsResponse) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_version_level, each.max_version_level) for each in response.finalized_features}


@pytest.mark.parametrize("version", [5, 100, 32767])
@pytest.mark.parametrize("body", [b"", b"\0", b"\x05test\x041.0\0", bytes(range(256))])
async def test_a_version_to_come_is_answered_in_version_0(version: int, body: bytes, autojump_clock) -> None:
    """Its body is not read (KIP-511)."""
    async with running() as scene:
        data = await answer(scene, version, body)
        response = codec.decode(ApiVersionsResponse, 0, memoryview(data))
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        listed = [(each.api_key, each.min_version, each.max_version) for each in response.api_keys]
        assert listed == [(ApiKey.API_VERSIONS, 0, 4)]
        assert codec.encode(response, 0) == data


GOOD = ["kwire", "a", "1", "a.b-c", "A1", "apache-kafka-java"]
BAD = ["", " ", "-a", "a-", ".a", "a.", "a_b", "a b", "ü", "a\n"]


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("text", GOOD + BAD)
async def test_names_and_versions_of_client_software(version: int, text: str, autojump_clock) -> None:
    async with running() as scene:
        for request in (named(software=text), named(version=text)):
            response = await scene.call(request, version)
            if text in GOOD:
                assert (response.error_code, len(response.api_keys)) == (0, len(APIS))
            else:
                assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])
