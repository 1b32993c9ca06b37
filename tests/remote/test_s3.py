"""The store in S3 against a real server: the conformance suite, large objects, and what is wrong at the start."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jvm.s3proxy import S3Proxy
from kwire.config.remote_storage import RemoteStorageConfig
from kwire.remote.s3 import S3ObjectStore
from tests.remote.conformance import *  # noqa: F403
from tests.remote.conformance import file_of, keys
from tests.remote.s3 import s3_config, s3_settings

MIB = 1 << 20


@pytest.fixture
async def store(s3_server: S3Proxy, s3_bucket: str) -> AsyncIterator[S3ObjectStore]:
    store = S3ObjectStore(s3_config(s3_server, s3_bucket, s3_multipart_upload_part_size=5 * MIB))
    yield store
    await store.close()


@pytest.mark.parametrize("size", [5 * MIB - 1, 5 * MIB, 5 * MIB + 1, 10 * MIB, 13 * MIB + 17])
async def test_sizes_around_those_of_parts(store: S3ObjectStore, tmp_path: Path, size: int) -> None:
    content = bytes(range(251)) * (size // 251 + 1)
    await store.put("a", [b"head", file_of(tmp_path / "file", content, 3, size - 4)])
    assert await store.size("a") == size
    assert await store.get("a", 0, size) == b"head" + content[3 : size - 1]
    assert await store.get("a", 5 * MIB - 10, 5 * MIB + 10) == (b"head" + content[3 : size - 1])[5 * MIB - 10 :][:20]


async def test_a_prefix_of_the_bucket(s3_server: S3Proxy, s3_bucket: str) -> None:
    store = S3ObjectStore(s3_config(s3_server, s3_bucket), "in/here/")
    whole = S3ObjectStore(s3_config(s3_server, s3_bucket))
    await store.put("a/b", [b"x"])
    await whole.put("in/hereafter", [b"y"])
    assert await keys(store) == ["a/b"]
    assert await keys(store, "a/") == ["a/b"]
    assert await keys(whole) == ["in/here/a/b", "in/hereafter"]
    await store.delete(["a/b", "hereafter"])
    assert await keys(whole) == ["in/hereafter"]
    await store.close()
    await whole.close()


def test_copies_take_memory_for_parts_and_not_for_files(s3_server: S3Proxy, s3_bucket: str, tmp_path: Path) -> None:
    file = tmp_path / "segment"
    with file.open("wb") as content:
        content.truncate(100 * MIB)
        content.seek(50 * MIB)
        content.write(b"amid")
    settings = json.dumps(s3_settings(s3_server, s3_bucket, s3_multipart_upload_part_size=5 * MIB))
    command = [sys.executable, "-m", "tests.remote.memory_of_copies", settings, str(file), "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    up, down = map(int, done.stdout.split())
    assert up < 64, "MiB: three parts of 5 MiB, and what an allocator keeps"
    assert down < 64


def test_the_bucket_in_the_name_of_the_host() -> None:
    def config(**more: str) -> RemoteStorageConfig:
        settings = {"backend.class": "s3", "s3.bucket.name": "logs"} | {
            f"s3.{name.replace('_', '.')}": value for name, value in more.items()
        }
        return RemoteStorageConfig({f"rsm.config.storage.{name}": value for name, value in settings.items()})

    def asked(**more: str) -> tuple[object, object]:
        chosen = S3ObjectStore(config(**more))._store.config
        return chosen.get("endpoint"), chosen.get("virtual_hosted_style_request")

    url = "https://minio:9000/"
    assert asked() == (None, None)
    assert asked(path_style_access_enabled="false") == (None, "true")
    assert asked(endpoint_url=url) == ("https://minio:9000", "false")
    assert asked(endpoint_url=url, path_style_access_enabled="true") == ("https://minio:9000", "false")
    assert asked(endpoint_url=url, path_style_access_enabled="false") == ("https://logs.minio:9000", "true")
