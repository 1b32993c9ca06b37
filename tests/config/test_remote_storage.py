"""The settings of remote storage: the table, what is valid, what is refused, what is warned of."""

from __future__ import annotations

import pytest

from kwire.config.broker import load
from kwire.config.definition import ConfigKey, Status
from kwire.config.errors import ConfigError
from kwire.config.keys.remote_storage import BACKENDS, REMOTE_STORAGE_KEYS
from kwire.config.remote_storage import RemoteStorageConfig, check_manager

DIRECTORY = {"rsm.config.storage.backend.class": "directory", "rsm.config.storage.root": "/objects"}
S3 = {"rsm.config.storage.backend.class": "s3", "rsm.config.storage.s3.bucket.name": "logs"}
KEY_ID, SECRET = "rsm.config.storage.aws.access.key.id", "rsm.config.storage.aws.secret.access.key"


@pytest.mark.parametrize("key", REMOTE_STORAGE_KEYS.values(), ids=lambda key: key.name)
def test_a_key_has_a_sentence_and_a_default_that_is_valid(key: ConfigKey) -> None:
    assert key.doc.endswith(".")
    assert key.doc[0].isupper()
    assert "_" not in key.name
    if key.default_text is not None:
        assert key.parse(key.default_text) == key.default


def test_values() -> None:
    config = RemoteStorageConfig(S3 | {"rsm.config.storage.s3.region": " eu-north-1 ", "log.dirs": "/x"})
    assert config.backend == "s3"
    assert config["storage.s3.bucket.name"] == "logs"
    assert config["storage.s3.region"] == "eu-north-1"
    assert config["storage.s3.multipart.upload.part.size"] == 8388608
    assert config["storage.s3.path.style.access.enabled"] is None
    assert config.warnings == ()


def test_another_prefix() -> None:
    settings = {"mine.storage.backend.class": "directory", "mine.storage.root": "/a", "rsm.config.storage.root": "/b"}
    config = RemoteStorageConfig(settings, "mine.")
    assert config["storage.root"] == "/a"
    assert config.full_name("storage.root") == "mine.storage.root"


@pytest.mark.parametrize("name", BACKENDS)
def test_names_of_backends(name: str) -> None:
    config = RemoteStorageConfig(DIRECTORY | S3 | {"rsm.config.storage.backend.class": name})
    assert config.backend == BACKENDS[name]


def test_from_the_environment() -> None:
    environment = {
        "KWIRE_RSM_CONFIG_STORAGE_BACKEND_CLASS": "s3",
        "KWIRE_RSM_CONFIG_STORAGE_S3_BUCKET_NAME": "logs",
    }
    assert RemoteStorageConfig(load(environment=environment).originals)["storage.s3.bucket.name"] == "logs"


def test_secrets_do_not_show() -> None:
    config = RemoteStorageConfig(S3 | {KEY_ID: "AKIA", SECRET: "hush"})
    assert config["storage.aws.secret.access.key"].value == "hush"
    assert str(config["storage.aws.secret.access.key"]) == "[hidden]"
    for name, key in REMOTE_STORAGE_KEYS.items():
        assert key.sensitive == any(word in name for word in ("access.key", "session.token"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "rsm.config.storage.backend.class must be set: directory or s3"),
        (
            {"rsm.config.storage.backend.class": "ftp"},
            "Invalid value ftp for configuration rsm.config.storage.backend.class: String must be one of: directory",
        ),
        (
            {"rsm.config.storage.backend.class": "directory"},
            "rsm.config.storage.root must be set for the storage directory",
        ),
        (
            {"rsm.config.storage.backend.class": "s3"},
            "rsm.config.storage.s3.bucket.name must be set for the storage s3",
        ),
        (S3 | {SECRET: "hush"}, f"{KEY_ID} and {SECRET} must be set both, or neither"),
        (
            S3 | {"rsm.config.storage.s3.endpoint.url": "minio:9000"},
            "Invalid value minio:9000 for configuration rsm.config.storage.s3.endpoint.url: it cannot be part of a URL",
        ),
        (
            S3 | {"rsm.config.storage.s3.endpoint.url": "http://bad host"},
            "Invalid value http://bad host for configuration rsm.config.storage.s3.endpoint.url: "
            "it cannot be part of a URL",
        ),
        (
            S3 | {"rsm.config.storage.s3.bucket.name": "a/b"},
            "Invalid value a/b for configuration rsm.config.storage.s3.bucket.name: it cannot be part of a URL",
        ),
        (
            S3 | {KEY_ID: "a", SECRET: "two\nlines"},
            f"Invalid value for configuration {SECRET}: it has other characters than visible ASCII ones",
        ),
        (
            S3 | {"rsm.config.storage.s3.multipart.upload.part.size": "1000"},
            "Invalid value 1000 for configuration rsm.config.storage.s3.multipart.upload.part.size: "
            "Value must be at least 5242880",
        ),
        (
            S3 | {"rsm.config.storage.s3.api.call.timeout": "1000"},
            "rsm.config.storage.s3.api.call.timeout must be at least rsm.config.storage.s3.api.call.attempt.timeout",
        ),
        (
            S3 | {"rsm.config.storage.s3.storage.class": "GLACIER"},
            "Invalid value GLACIER for configuration rsm.config.storage.s3.storage.class: String must be one of: ",
        ),
        (
            S3 | {"rsm.config.encryption.enabled": "true"},
            "Invalid value true for configuration rsm.config.encryption.enabled: "
            "this version of kwire supports only its default, 'false'",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as info:
        RemoteStorageConfig(settings)
    assert str(info.value).startswith(message)


def test_what_is_warned_of() -> None:
    config = RemoteStorageConfig(
        S3
        | {
            "rsm.config.custom.metadata.fields.include": "REMOTE_SIZE",
            "rsm.config.fetch.chunk.cache.class": "io.aiven.DiskChunkCache",
            "rsm.config.storage.s3.buckets": "typo",
            "rsm.config.encryption.enabled": "false",
        }
    )
    assert config.warnings == (
        "unknown configuration: rsm.config.storage.s3.buckets",
        "no effect, kwire has nothing to tune there: rsm.config.custom.metadata.fields.include, "
        "rsm.config.fetch.chunk.cache.class",
    )


def test_what_is_not_there_yet_is_refused() -> None:
    later = [name for name, key in REMOTE_STORAGE_KEYS.items() if key.status is Status.LATER]
    assert {"compression.enabled", "encryption.enabled", "storage.aws.credentials.file"} <= set(later)


def test_no_class_is_loaded() -> None:
    check_manager(None)
    check_manager("io.aiven.kafka.tieredstorage.RemoteStorageManager")
    with pytest.raises(ConfigError, match="kwire loads no classes"):
        check_manager("org.apache.kafka.server.log.remote.storage.LocalTieredStorage")
