"""Rows of DescribeConfigs: the expected ones are what Apache Kafka 4.3.1 answers."""

from __future__ import annotations

from kwire.config.broker import BrokerConfig
from kwire.config.describe import (
    ConfigRow,
    ConfigSource,
    SynonymRow,
    describe_broker,
    describe_broker_defaults,
    describe_topic,
)
from kwire.config.keys import BROKER_KEYS
from kwire.config.topic_keys import TOPIC_KEYS
from kwire.config.types import Type

DEFAULT = ConfigSource.DEFAULT_CONFIG
STATIC = ConfigSource.STATIC_BROKER_CONFIG
DYNAMIC = ConfigSource.DYNAMIC_BROKER_CONFIG
CLUSTER = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG


def one(rows: list[ConfigRow], name: str) -> ConfigRow:
    (row,) = [row for row in rows if row.name == name]
    return row


def test_a_topic_without_configs() -> None:
    rows = describe_topic(BrokerConfig({}), {})
    assert [row.name for row in rows] == [name for name in TOPIC_KEYS if name != "internal.segment.bytes"]
    assert all(row.source is DEFAULT and not row.read_only and not row.sensitive for row in rows)
    policy = one(rows, "cleanup.policy")
    assert (policy.value, policy.type) == ("delete", Type.LIST)
    assert policy.synonyms == (SynonymRow("log.cleanup.policy", "delete", DEFAULT),)
    assert policy.documentation
    retention = one(rows, "retention.ms")
    assert (retention.value, retention.synonyms) == ("604800000", ())
    assert one(rows, "flush.ms").synonyms == ()
    assert one(rows, "leader.replication.throttled.replicas").value == ""
    assert one(rows, "min.cleanable.dirty.ratio").value == "0.5"


def test_a_topics_own_configs() -> None:
    rows = describe_topic(BrokerConfig({}), {"cleanup.policy": "compact , delete", "retention.ms": " 500 "})
    assert one(rows, "cleanup.policy") == ConfigRow(
        "cleanup.policy",
        "compact,delete",
        TOPIC,
        False,
        False,
        Type.LIST,
        TOPIC_KEYS["cleanup.policy"].doc,
        (SynonymRow("cleanup.policy", "compact,delete", TOPIC), SynonymRow("log.cleanup.policy", "delete", DEFAULT)),
    )
    assert one(rows, "retention.ms").synonyms == (SynonymRow("retention.ms", "500", TOPIC),)


def test_empty_items_of_a_list_stay() -> None:
    throttled = "leader.replication.throttled.replicas"
    assert one(describe_topic(BrokerConfig({}), {throttled: " , "}), throttled).value == ","


def test_an_internal_config_shows_where_it_is_set() -> None:
    rows = describe_topic(BrokerConfig({}), {"internal.segment.bytes": "1000"})
    assert one(rows, "internal.segment.bytes").value == "1000"
    assert one(rows, "segment.bytes").value == "1073741824"


def test_a_topics_value_that_comes_from_the_broker() -> None:
    broker = BrokerConfig({}).with_dynamic({"log.retention.ms": "5"}, {"log.retention.ms": "7"})
    assert one(describe_topic(broker, {}), "retention.ms")[1:3] == ("5", DYNAMIC)
    assert one(describe_topic(broker, {}), "retention.ms").synonyms == (
        SynonymRow("log.retention.ms", "5", DYNAMIC),
        SynonymRow("log.retention.ms", "7", CLUSTER),
        SynonymRow("log.retention.hours", "168", DEFAULT),
    )
    flush = one(describe_topic(BrokerConfig({}).with_dynamic({"log.flush.interval.ms": "100"}), {}), "flush.ms")
    assert flush.value == "100"
    assert flush.synonyms == (
        SynonymRow("log.flush.interval.ms", "100", DYNAMIC),
        SynonymRow("log.flush.scheduler.interval.ms", "9223372036854775807", DEFAULT),
    )


def test_names_choose_rows() -> None:
    broker = BrokerConfig({})
    assert [row.name for row in describe_topic(broker, {}, ["segment.ms", "nonsense"])] == ["segment.ms"]
    assert [row.name for row in describe_broker(broker, ["log.roll.ms", "nonsense"])] == ["log.roll.ms"]
    assert len(describe_topic(broker, {}, [])) == len(describe_topic(broker, {}))


def test_a_broker() -> None:
    broker = BrokerConfig({"node.id": "1", "log.segment.bytes": "2000000", "own.plugin.key": "x"})
    rows = describe_broker(broker)
    shown = {name for name, key in BROKER_KEYS.items() if not key.internal and not key.admin_only}
    assert {row.name for row in rows} == shown | {"own.plugin.key"}
    segment = one(rows, "log.segment.bytes")
    assert segment[1:5] == ("2000000", STATIC, False, False)
    assert segment.synonyms == (
        SynonymRow("log.segment.bytes", "2000000", STATIC),
        SynonymRow("log.segment.bytes", "1073741824", DEFAULT),
    )
    assert one(rows, "num.partitions").read_only
    assert one(rows, "log.retention.ms")[1:3] == (None, DEFAULT)
    assert one(rows, "log.retention.ms").synonyms == ()
    assert one(rows, "log.retention.hours").synonyms == (SynonymRow("log.retention.hours", "168", DEFAULT),)
    assert one(rows, "log.cleaner.io.max.bytes.per.second").value == "1.7976931348623157E308"
    assert one(rows, "config.providers").synonyms == (SynonymRow("config.providers", "", DEFAULT),)
    assert one(rows, "own.plugin.key") == ConfigRow(
        "own.plugin.key", None, STATIC, True, True, Type.UNKNOWN, None, (SynonymRow("own.plugin.key", None, STATIC),)
    )


def test_secrets_are_not_shown() -> None:
    row = one(describe_broker(BrokerConfig({})), "ssl.keystore.password")
    assert (row.value, row.sensitive, row.type) == (None, True, Type.PASSWORD)
    defaults = describe_broker_defaults({"sasl.jaas.config": "secret"})
    assert "secret" not in repr(defaults)


def test_a_brokers_dynamic_configs() -> None:
    broker = BrokerConfig({}).with_dynamic({"background.threads": "12"}, {"min.insync.replicas": "2", "foo": "x"})
    rows = describe_broker(broker)
    assert one(rows, "background.threads").synonyms == (
        SynonymRow("background.threads", "12", DYNAMIC),
        SynonymRow("background.threads", "10", DEFAULT),
    )
    assert one(rows, "min.insync.replicas")[1:3] == ("2", CLUSTER)
    assert one(rows, "foo").source is CLUSTER


def test_the_cluster_wide_defaults_show_what_is_set_there_only() -> None:
    rows = describe_broker_defaults({"log.retention.ms": "7", "foo": "x"})
    assert rows == [
        ConfigRow(
            "log.retention.ms",
            "7",
            CLUSTER,
            False,
            False,
            Type.LONG,
            BROKER_KEYS["log.retention.ms"].doc,
            (SynonymRow("log.retention.ms", "7", CLUSTER),),
        ),
        ConfigRow("foo", None, CLUSTER, True, True, Type.UNKNOWN, None, (SynonymRow("foo", None, CLUSTER),)),
    ]
    assert describe_broker_defaults({"foo": "x"}, ["bar"]) == []
