"""Values and their texts; the messages are those of Apache Kafka's ConfigDef."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.config.errors import ConfigError
from kwire.config.keys import BROKER_KEYS
from kwire.config.topic_keys import TOPIC_KEYS
from kwire.config.types import Password, Type, parse, to_text


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Type.INT, " +5 ", 5),
        (Type.INT, "-2147483648", -(2**31)),
        (Type.LONG, "9223372036854775807", 2**63 - 1),
        (Type.SHORT, "32767", 32767),
        (Type.INT, "\uff11\uff12", 12),
        (Type.LONG, "-\u0661\u0967", -11),
        (Type.INT, "0" * 5000 + "7", 7),
        (Type.INT, "\0 5\x1b", 5),
        (Type.BOOLEAN, " TRUE ", True),
        (Type.BOOLEAN, "fal\u017fe", False),
        (Type.BOOLEAN, "false", False),
        (Type.DOUBLE, "0.5d", 0.5),
        (Type.DOUBLE, "1e3", 1000.0),
        (Type.DOUBLE, ".5", 0.5),
        (Type.DOUBLE, "0x1p-1", 0.5),
        (Type.DOUBLE, "-0X.8P1d", -1.0),
        (Type.DOUBLE, "-0x1p9999", float("-inf")),
        (Type.DOUBLE, "+Infinity", float("inf")),
        (Type.LIST, "", ()),
        (Type.LIST, " a , b,c ", ("a", "b", "c")),
        (Type.LIST, "a,,b", ("a", "", "b")),
        (Type.LIST, "a,b,a", ("a", "b", "a")),
        (Type.LIST, ",", ("", "")),
        (Type.LIST, "a\u00a0,b", ("a\u00a0", "b")),
        (Type.STRING, " a b ", "a b"),
        (Type.CLASS, "x.Y", "x.Y"),
    ],
)
def test_parses(kind: Type, text: str, value: object) -> None:
    parsed = parse("name", kind, text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(
            (Type.INT, text)
            for text in ("", "+", "1 2", "1_0", "0x1", "1.", "\u00b2", "\u2167", "\U0001d7cf", "\u00a05")
        ),
        (Type.INT, "2147483648"),
        (Type.INT, "-2147483649"),
        (Type.SHORT, "32768"),
        (Type.LONG, "9" * 5000),
        *((Type.DOUBLE, text) for text in ("", ".", "NaNf", "Infinityd", "inf", "nan", "1_0.5", "0x1", "1e", "\uff11")),
        *((Type.BOOLEAN, text) for text in ("", "1", "yes", "\u00a0true")),
    ],
)
def test_no_value(kind: Type, text: str) -> None:
    with pytest.raises(ConfigError):
        parse("name", kind, text)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("num.partitions", "abc", "Invalid value abc for configuration num.partitions: Not a number of type INT"),
        ("num.partitions", "", "Invalid value  for configuration num.partitions: Not a number of type INT"),
        ("num.partitions", "1.5", "Invalid value 1.5 for configuration num.partitions: Not a number of type INT"),
        ("num.partitions", "1_000", "Invalid value 1_000 for configuration num.partitions: Not a number of type INT"),
        (
            "num.partitions",
            "3000000000",
            "Invalid value 3000000000 for configuration num.partitions: Not a number of type INT",
        ),
        ("num.partitions", "0", "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
        (
            "offsets.topic.replication.factor",
            "40000",
            "Invalid value 40000 for configuration offsets.topic.replication.factor: Not a number of type SHORT",
        ),
        ("log.retention.ms", "x", "Invalid value x for configuration log.retention.ms: Not a number of type LONG"),
        (
            "auto.create.topics.enable",
            "yes",
            "Invalid value yes for configuration auto.create.topics.enable: Expected value to be either true or false",
        ),
        (
            "log.cleaner.min.cleanable.ratio",
            "1.5",
            "Invalid value 1.5 for configuration log.cleaner.min.cleanable.ratio: Value must be no more than 1",
        ),
        (
            "log.cleaner.min.cleanable.ratio",
            "x",
            "Invalid value x for configuration log.cleaner.min.cleanable.ratio: Not a number of type DOUBLE",
        ),
        (
            "compression.type",
            "foo",
            "Invalid value foo for configuration compression.type: "
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            "log.cleanup.policy",
            "delete,foo",
            "Invalid value foo for configuration log.cleanup.policy: String must be one of: compact, delete",
        ),
        ("log.cleanup.policy", "delete,,compact", "Configuration 'log.cleanup.policy' values must not be empty."),
        (
            "log.dirs",
            "",
            "Configuration 'log.dirs' must not be empty. Valid values include: any non-empty value",
        ),
        (
            "process.roles",
            "",
            "Configuration 'process.roles' must not be empty. Valid values include: [broker, controller]",
        ),
        (
            "remote.log.storage.manager.class.name",
            "",
            "Invalid value  for configuration remote.log.storage.manager.class.name: String must be non-empty",
        ),
        (
            "group.consumer.migration.policy",
            "foo",
            "Invalid value foo for configuration group.consumer.migration.policy: "
            "String must be one of (case insensitive): DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL",
        ),
    ],
)
def test_an_invalid_broker_value(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        BROKER_KEYS[name].parse(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        ("segment.bytes", "1", "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576"),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "leader.replication.throttled.replicas",
            "0:1,*",
            "Invalid value [0:1, *] for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following "
            "format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
    ],
)
def test_an_invalid_topic_value(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        TOPIC_KEYS[name].parse(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (9.999e6, "9999000.0"),
        (123456.789, "123456.789"),
        (1e-3, "0.001"),
        (1e-4, "1.0E-4"),
        (0.00012345, "1.2345E-4"),
        (12345678.9, "1.23456789E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-1e10, "-1.0E10"),
        (float("inf"), "Infinity"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_doubles_have_javas_text(value: float, text: str) -> None:
    assert to_text(value) == text


@given(st.floats(allow_nan=False))
def test_doubles_come_back(value: float) -> None:
    text = to_text(value)
    assert text is not None
    assert parse("x", Type.DOUBLE, text) == value


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", ()),
        ("*", ("*",)),
        (",", ("", "")),
        ("*,", ("*", "")),
        ("0:1,,1:2", ("0:1", "", "1:2")),
        ("0:1,0:1", ("0:1", "0:1")),
    ],
)
def test_throttled_replicas(text: str, pairs: tuple[str, ...]) -> None:
    assert TOPIC_KEYS["follower.replication.throttled.replicas"].parse(text) == pairs


def test_a_word_that_is_listed_twice_counts_once() -> None:
    assert TOPIC_KEYS["cleanup.policy"].parse("delete, compact,delete") == ("delete", "compact")


def test_a_password_does_not_show() -> None:
    password = parse("x", Type.PASSWORD, "secret")
    assert password == Password("secret")
    assert "secret" not in f"{password} {password!r} {[password]}"
    assert to_text(password) == "secret"


def test_a_message_is_one_line() -> None:
    with pytest.raises(ConfigError) as error:
        BROKER_KEYS["num.partitions"].parse("1\n2")
    assert "\n" not in str(error.value)
