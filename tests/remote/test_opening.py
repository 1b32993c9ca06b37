"""Opening the store that a configuration asks for: it is tried, and what is wrong is said in a line."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from jvm.s3proxy import S3Proxy
from kwire.config.errors import ConfigError
from kwire.config.remote_storage import RemoteStorageConfig
from kwire.ports.system import system_ports
from kwire.remote.errors import RemoteStorageError, RemoteStorageTimeout, RemoteStorageUnavailable
from kwire.remote.object_store import ObjectStore
from kwire.remote.opening import open_object_store
from tests.remote.conformance import keys
from tests.remote.s3 import s3_settings


async def opened(settings: dict[str, str]) -> ObjectStore:
    config = RemoteStorageConfig({f"rsm.config.{name}": value for name, value in settings.items()})
    return await open_object_store(config, system_ports(threads=2))


async def test_a_directory(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    store = await opened({"storage.backend.class": "directory", "storage.root": str(root), "key.prefix": "/a/b/"})
    assert await keys(store) == []
    await store.put("c", [b"content"])
    assert (root / "a" / "b" / "c").read_bytes() == b"content"
    await store.close()


async def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RemoteStorageError) as info:
        await opened({"storage.backend.class": "directory", "storage.root": str(tmp_path / "file")})
    assert str(info.value).startswith(f"cannot use {tmp_path}/file: put kwire-probe-")
    assert str(info.value).endswith(": Not a directory")
    assert not info.value.retriable


@pytest.mark.parametrize("prefix", ["a b", "a//b", "..", "a/" * 101])
async def test_a_prefix_that_cannot_be(tmp_path: Path, prefix: str) -> None:
    with pytest.raises(ConfigError, match=r"rsm\.config\.key\.prefix may have"):
        await opened({"storage.backend.class": "directory", "storage.root": str(tmp_path), "key.prefix": prefix})


async def test_s3(s3_server: S3Proxy, s3_bucket: str) -> None:
    store = await opened(s3_settings(s3_server, s3_bucket) | {"key.prefix": "in/here"})
    assert await keys(store) == []
    await store.put("c", [b"content"])
    assert (s3_server.objects / s3_bucket / "in/here/c").read_bytes() == b"content"
    await store.close()


async def test_credentials_of_the_environment(
    s3_server: S3Proxy, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = s3_settings(s3_server, s3_bucket)
    for name, variable in (("access.key.id", "AWS_ACCESS_KEY_ID"), ("secret.access.key", "AWS_SECRET_ACCESS_KEY")):
        monkeypatch.setenv(variable, settings.pop(f"storage.aws.{name}"))
    await (await opened(settings)).close()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(RemoteStorageError, match="SignatureDoesNotMatch"):
        await opened(settings)


async def test_set_credentials_do_not_mix_with_those_of_the_environment(
    s3_server: S3Proxy, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the other")
    await (await opened(s3_settings(s3_server, s3_bucket))).close()


@pytest.mark.parametrize(
    ("variables", "error", "reason"),
    [
        ({"AWS_CHECKSUM_ALGORITHM": "x"}, ConfigError, '"x" is not a valid checksum algorithm'),
        (
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
            RemoteStorageError,
            "an endpoint without TLS must be set as storage.s3.endpoint.url, not in the environment",
        ),
    ],
    ids=["nonsense", "endpoint"],
)
async def test_an_environment_that_cannot_be(
    s3_server: S3Proxy,
    s3_bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    error: type[Exception],
    reason: str,
) -> None:
    settings = s3_settings(s3_server, s3_bucket, **QUICK)
    del settings["storage.s3.endpoint.url"]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(error) as info:
        await opened(settings)
    assert str(info.value).endswith(reason)
    assert "\n" not in str(info.value)


async def test_no_credentials(
    s3_server: S3Proxy, s3_bucket: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = s3_settings(s3_server, s3_bucket, **QUICK)
    del settings["storage.aws.access.key.id"], settings["storage.aws.secret.access.key"]
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    await (await opened(settings)).close()
    assert line_of(caplog).endswith("no credentials are set, and the machine has none to give: Connection refused")


QUICK = {"s3_api_call_timeout": 7_000, "s3_api_call_attempt_timeout": 6_900}
"""Tries again for a tenth of a second, and is patient with a machine that stands still meanwhile."""


def line_of(caplog: pytest.LogCaptureFixture) -> str:
    (record,) = [one for one in caplog.records if one.name == "kwire.remote.opening"]
    return record.getMessage()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"storage.s3.bucket.name": "nowhere"}, "NoSuchBucket: The specified bucket does not exist"),
        ({"storage.aws.access.key.id": "nobody"}, "InvalidAccessKeyId: Forbidden"),
        (
            {"storage.aws.secret.access.key": "hush"},
            "SignatureDoesNotMatch: The request signature we calculated does not match the signature you provided. "
            "Check your key and signing method.",
        ),
    ],
    ids=["bucket", "access key", "secret"],
)
async def test_a_store_that_refuses_is_told_of_in_a_line(
    s3_server: S3Proxy, s3_bucket: str, wrong: dict[str, str], reason: str
) -> None:
    settings = s3_settings(s3_server, s3_bucket) | wrong
    with pytest.raises(RemoteStorageError) as info:
        await opened(settings)
    said = str(info.value)
    assert said.startswith(f"cannot use s3://{settings['storage.s3.bucket.name']}/ at {s3_server.endpoint}: put kwire-")
    assert said.partition(": put ")[2].partition(": ")[2].startswith(reason)
    assert "\n" not in said
    assert "hush" not in said
    assert s3_server.secret_access_key not in said
    assert not info.value.retriable


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("http://127.0.0.1:1", "Connection refused"),
        ("http://no-host.invalid:9000", "failed to lookup address information: Name or service not known"),
    ],
)
async def test_a_store_that_is_away_is_told_of_and_may_come_back(
    s3_server: S3Proxy, s3_bucket: str, caplog: pytest.LogCaptureFixture, endpoint: str, reason: str
) -> None:
    settings = s3_settings(s3_server, s3_bucket, **QUICK) | {"storage.s3.endpoint.url": endpoint}
    store = await opened(settings)
    assert line_of(caplog).startswith(f"cannot use s3://{s3_bucket}/ at {endpoint}: put kwire-probe-")
    assert line_of(caplog).endswith(f": {reason}")
    with pytest.raises(RemoteStorageUnavailable, match=reason):
        await store.size("a")
    await store.close()


async def test_a_broker_starts_while_its_store_is_away() -> None:
    server = S3Proxy()
    server.make_bucket("bucket")
    try:
        store = await opened(s3_settings(server, "bucket", **QUICK))
        server.start()
        with trio.fail_after(60):
            while True:
                with suppress(RemoteStorageUnavailable, RemoteStorageTimeout):
                    await store.put("a", [b"x"])
                    break
        assert await store.size("a") == 1
        await store.close()
    finally:
        server.close()


async def test_a_server_without_tls(s3_server: S3Proxy, s3_bucket: str, caplog: pytest.LogCaptureFixture) -> None:
    settings = s3_settings(s3_server, s3_bucket, **QUICK)
    settings["storage.s3.endpoint.url"] = f"https://127.0.0.1:{s3_server.port}"
    await (await opened(settings)).close()
    assert line_of(caplog).endswith("the server does not speak TLS")


def test_without_obstore_it_is_said_what_to_install() -> None:
    script = """
import sys
sys.modules["obstore"] = None
import trio
from kwire.config.errors import ConfigError
from kwire.config.remote_storage import RemoteStorageConfig
from kwire.ports.system import system_ports
from kwire.remote.opening import open_object_store
config = RemoteStorageConfig({"rsm.config.storage.backend.class": "s3", "rsm.config.storage.s3.bucket.name": "b"})
try:
    trio.run(open_object_store, config, system_ports(threads=1))
except ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "remote storage in S3 needs obstore: pip install 'kwire[s3]'\n"


def test_obstore_is_loaded_for_s3_alone() -> None:
    script = "import sys, kwire.remote.opening; print(sorted({'obstore', 'kwire.remote.s3'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_certificates(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with S3Proxy(tls=True) as server:
        server.make_bucket("bucket")
        settings = s3_settings(server, "bucket", s3_api_call_timeout=12_100, s3_api_call_attempt_timeout=12_000)
        await (await opened(settings)).close()
        assert line_of(caplog).endswith("the server's certificate is not valid, or nobody trusted has signed it")
        caplog.clear()
        await (await opened(settings | {"storage.aws.certificate.check.enabled": "false"})).close()
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
        await (await opened(settings)).close()
        assert not caplog.records
