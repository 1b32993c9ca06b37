"""An S3 server for tests, one for a test process, and what a broker needs to know of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jvm.s3proxy import S3Proxy
from kwire.config.remote_storage import RemoteStorageConfig


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Proxy]:
    with S3Proxy() as server:
        yield server


@pytest.fixture
def s3_bucket(s3_server: S3Proxy, request: pytest.FixtureRequest) -> str:
    """The name of a new bucket."""
    name = f"test-{len(list(s3_server.objects.iterdir()))}"
    s3_server.make_bucket(name)
    return name


def s3_settings(server: S3Proxy, bucket: str, **more: object) -> dict[str, str]:
    """The settings of remote storage, as text by key, without their prefix."""
    return {
        "storage.backend.class": "s3",
        "storage.s3.bucket.name": bucket,
        "storage.s3.endpoint.url": server.endpoint,
        "storage.aws.access.key.id": server.access_key_id,
        "storage.aws.secret.access.key": server.secret_access_key,
        **{f"storage.{name.replace('_', '.')}": str(value) for name, value in more.items()},
    }


def s3_config(server: S3Proxy, bucket: str, **more: object) -> RemoteStorageConfig:
    """The same as a configuration; `more` are settings such as s3_api_call_timeout."""
    settings = s3_settings(server, bucket, **more)
    return RemoteStorageConfig({f"rsm.config.{name}": text for name, text in settings.items()})
