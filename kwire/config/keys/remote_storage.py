"""Settings of remote storage: what stands behind `remote.log.storage.manager.impl.prefix` (`rsm.config.`).

Apache Kafka passes them on to the class that an administrator installs. kwire has its own object stores; the names,
types and validity are those of Aiven's storage manager for Apache Kafka, which most files have in them. They are no
broker keys: nobody may change them at run time, and DescribeConfigs does not show their values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kwire.config.definition import (
    BOOLEAN,
    HIGH,
    INT,
    LATER,
    LIST,
    LONG,
    LOW,
    MAX_INT,
    MEDIUM,
    MOOT,
    PASSWORD,
    READ_ONLY,
    STRING,
    SUPPORTED,
    ConfigKey,
)
from kwire.config.errors import ConfigError
from kwire.config.types import Password, invalid
from kwire.config.validity import NotEmpty, OneOf, at_least, between

DIRECTORY, S3 = "directory", "s3"
BACKENDS: Mapping[str, str] = {
    DIRECTORY: DIRECTORY,
    S3: S3,
    "io.aiven.kafka.tieredstorage.storage.filesystem.FileSystemStorage": DIRECTORY,
    "io.aiven.kafka.tieredstorage.storage.s3.S3Storage": S3,
}
"""What `storage.backend.class` may say, and which store that is."""

STORAGE_CLASSES = (
    "STANDARD", "REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "OUTPOSTS",
    "SNOW", "EXPRESS_ONEZONE", "FSX_OPENZFS", "FSX_ONTAP",
)  # fmt: skip


class Form:
    """Texts that a regular expression matches as a whole: what can stand in a URL at that place."""

    def __init__(self, expression: str) -> None:
        self._expression = re.compile(expression)

    def check(self, name: str, value: str) -> None:
        if not self._expression.fullmatch(value):
            raise invalid(name, value, "it cannot be part of a URL")

    def __str__(self) -> str:
        return self._expression.pattern


class Printable:
    """Secrets of visible ASCII characters: what can stand in a header."""

    def check(self, name: str, value: Password) -> None:
        if not re.fullmatch(r"[!-~]+", value.value):
            raise ConfigError(
                f"Invalid value for configuration {name}: it has other characters than visible ASCII ones"
            )

    def __str__(self) -> str:
        return "visible ASCII characters"


# fmt: off
KEYS = (
    ConfigKey("storage.backend.class", STRING, None, SUPPORTED, HIGH, READ_ONLY, OneOf(*BACKENDS),
        "The object store: a directory, or S3 and what speaks its protocol."),
    ConfigKey("key.prefix", STRING, "", SUPPORTED, HIGH, READ_ONLY, None,
        "Folder of the bucket or directory in which all objects are."),
    ConfigKey("storage.root", STRING, None, SUPPORTED, HIGH, READ_ONLY, NotEmpty(),
        "The directory; with several brokers a network file system that all of them mount there."),

    ConfigKey("storage.s3.bucket.name", STRING, None, SUPPORTED, HIGH, READ_ONLY, Form(r"[A-Za-z0-9._-]+"),
        "The bucket. It must be there."),
    ConfigKey("storage.s3.region", STRING, None, SUPPORTED, MEDIUM, READ_ONLY, Form(r"[A-Za-z0-9-]+"),
        "Region of the bucket; else AWS_REGION or AWS_DEFAULT_REGION of the environment, else us-east-1."),
    ConfigKey("storage.s3.endpoint.url", STRING, None, SUPPORTED, LOW, READ_ONLY,
        Form(r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?"),
        "Address of a store that is not Amazon's, such as http://minio:9000."),
    ConfigKey("storage.s3.path.style.access.enabled", BOOLEAN, None, SUPPORTED, LOW, READ_ONLY, None,
        "Name the bucket in the path of URLs, as is done where this is unset, or in the host."),
    ConfigKey("storage.s3.multipart.upload.part.size", INT, 8388608, SUPPORTED, MEDIUM, READ_ONLY,
        between(5242880, 2147483639),
        "Bytes of a part of an upload; a few of them are held in memory. Aiven: 26214400."),
    ConfigKey("storage.s3.api.call.timeout", LONG, 120000, SUPPORTED, LOW, READ_ONLY, between(1, MAX_INT),
        "Milliseconds for a call with all its retries; an upload has as long for each of its parts. Aiven: unset."),
    ConfigKey("storage.s3.api.call.attempt.timeout", LONG, 30000, SUPPORTED, LOW, READ_ONLY, between(1, MAX_INT),
        "Milliseconds for each attempt at a call. Aiven: unset."),
    ConfigKey("storage.s3.storage.class", STRING, "STANDARD", SUPPORTED, LOW, READ_ONLY, OneOf(*STORAGE_CLASSES),
        "Storage class of new objects; not those classes from which objects must be restored before they can be read."),
    ConfigKey("storage.aws.access.key.id", PASSWORD, None, SUPPORTED, MEDIUM, READ_ONLY, Printable(),
        "Access key; unset: AWS's environment variables, web identity, container or instance metadata."),
    ConfigKey("storage.aws.secret.access.key", PASSWORD, None, SUPPORTED, MEDIUM, READ_ONLY, Printable(),
        "Secret of the access key."),
    ConfigKey("storage.aws.session.token", PASSWORD, None, SUPPORTED, MEDIUM, READ_ONLY, Printable(),
        "Session token of a temporary access key."),
    ConfigKey("storage.aws.certificate.check.enabled", BOOLEAN, True, SUPPORTED, LOW, READ_ONLY, None,
        "Check the certificate of the endpoint."),

    ConfigKey("compression.enabled", BOOLEAN, False, LATER, HIGH, READ_ONLY, None,
        "Compress what is copied."),
    ConfigKey("encryption.enabled", BOOLEAN, False, LATER, HIGH, READ_ONLY, None,
        "Encrypt what is copied."),
    ConfigKey("segment.format", STRING, "kafka", LATER, MEDIUM, READ_ONLY, OneOf("kafka", "iceberg"),
        "Format of remote segments."),
    ConfigKey("upload.rate.limit.bytes.per.second", INT, None, LATER, MEDIUM, READ_ONLY, between(1048576, 1000000000),
        "Most bytes uploaded in a second; remote.log.manager.copy.max.bytes.per.second is Apache Kafka's own."),
    ConfigKey("storage.aws.credentials.file", STRING, None, LATER, MEDIUM, READ_ONLY, None,
        "File with credentials, read again when it changes."),
    ConfigKey("storage.aws.credentials.provider.class", STRING, None, LATER, LOW, READ_ONLY, None,
        "Class that gives credentials."),

    ConfigKey("chunk.size", INT, 4194304, SUPPORTED, HIGH, READ_ONLY, between(65536, 1073741823),
        "Bytes of a segment that are read at once."),
    ConfigKey("fetch.chunk.cache.size", LONG, 33554432, SUPPORTED, MEDIUM, READ_ONLY, at_least(0),
        "Bytes of chunks that are kept in memory after they were read. Aiven: must be set."),
    ConfigKey("fetch.chunk.cache.retention.ms", LONG, 600000, SUPPORTED, MEDIUM, READ_ONLY, at_least(-1),
        "How long a chunk that nobody reads is kept; -1: for ever."),
    ConfigKey("fetch.chunk.cache.prefetch.max.size", INT, 16777216, SUPPORTED, MEDIUM, READ_ONLY, at_least(0),
        "Bytes of chunks on their way before they are asked for, for all readers together. Aiven: 0."),
    ConfigKey("compression.heuristic.enabled", BOOLEAN, False, MOOT, HIGH, READ_ONLY, None,
        "Leave out of compression what is compressed already."),
    ConfigKey("key.prefix.mask", BOOLEAN, False, MOOT, LOW, READ_ONLY, None,
        "Leave the prefix of keys out of logs."),
    ConfigKey("custom.metadata.fields.include", LIST, (), MOOT, LOW, READ_ONLY, None,
        "What the metadata of a remote segment says besides."),
    ConfigKey("storage.overwrite.enabled", BOOLEAN, False, MOOT, MEDIUM, READ_ONLY, None,
        "Overwrite files in the directory; each broker's attempts have keys of their own."),
    ConfigKey("storage.aws.checksum.check.enabled", BOOLEAN, False, MOOT, MEDIUM, READ_ONLY, None,
        "Have the client verify checksums; what is uploaded is always signed with its SHA-256."),
    ConfigKey("storage.s3.legacy.md5.plugin.enabled", BOOLEAN, False, MOOT, MEDIUM, READ_ONLY, None,
        "Send the MD5 checksums that older stores ask for; kwire sends them where they do."),
    ConfigKey("metrics.num.samples", INT, 2, MOOT, LOW, READ_ONLY, at_least(1),
        "Samples kept for metrics of the storage manager."),
    ConfigKey("metrics.sample.window.ms", LONG, 30000, MOOT, LOW, READ_ONLY, at_least(1),
        "Length of such a sample."),
    ConfigKey("metrics.recording.level", STRING, "INFO", MOOT, LOW, READ_ONLY, OneOf("INFO", "DEBUG", "TRACE"),
        "Which metrics the storage manager records."),
)
# fmt: on

REMOTE_STORAGE_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in KEYS}
"""Every setting by its name without the prefix."""
