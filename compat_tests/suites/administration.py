"""Topics and configs, administered through a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests import cases
from compat_tests.driver import Admin, Bounds, Driver, IncrementalAdmin, Refused, Setting
from kwire.protocol.errors import ErrorCode

Settled = Callable[[Callable[[], Any]], Any]
RETENTION = "retention.ms"
WEEK = str(7 * 24 * 3600 * 1000)
"""The default of retention.ms."""


class TopicAdminSuite:
    """Creating, describing, growing and deleting topics, and deleting records."""

    def test_create_describe_delete(self, admin: Admin, new_name: Callable[[], str], settled: Settled) -> None:
        name = new_name()
        admin.create_topic(name, partitions=3, configs={RETENTION: "1234", "cleanup.policy": "compact,delete"})

        layout = settled(lambda: admin.describe_topic(name))
        assert [len(replicas) for replicas in layout.replicas] == [1, 1, 1]
        assert not layout.internal
        settings = settled(lambda: admin.topic_configs(name))
        assert settings[RETENTION] == Setting("1234", overridden=True)
        assert settings["cleanup.policy"] == Setting("compact,delete", overridden=True)
        assert settings["max.message.bytes"] == Setting("1048588", overridden=False)
        assert name in admin.topic_names()

        admin.delete_topic(name)

        def assert_gone() -> None:
            assert name not in admin.topic_names()

        settled(assert_gone)

    def test_a_deleted_topic_comes_back_empty(
        self, admin: Admin, driver: Driver, kwire_topic: str, settled: Settled
    ) -> None:
        driver.produce(kwire_topic, cases.numbered(3))
        admin.delete_topic(kwire_topic)
        settled(lambda: admin.create_topic(kwire_topic))
        settled(lambda: admin.describe_topic(kwire_topic))

        assert settled(lambda: driver.bounds(kwire_topic)) == Bounds(0, 0)
        assert driver.produce(kwire_topic, cases.numbered(2)) == [0, 1]

    @pytest.mark.parametrize(
        ("options", "code"),
        [
            ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS),
            ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
            ({"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
            ({"configs": {RETENTION: "soon"}}, ErrorCode.INVALID_CONFIG),
            ({"configs": {"no.such.config": "1"}}, ErrorCode.INVALID_CONFIG),
            ({"assignment": [[77]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ],
    )
    def test_refused_creations(
        self, admin: Admin, new_name: Callable[[], str], options: dict[str, Any], code: ErrorCode
    ) -> None:
        name = new_name()
        with pytest.raises(Refused) as refused:
            admin.create_topic(name, **options)

        assert refused.value.code == code
        assert name not in admin.topic_names()

    @pytest.mark.parametrize("name", ["with space", "..", "a" * 250])
    def test_invalid_names(self, admin: Admin, name: str) -> None:
        with pytest.raises(Refused) as refused:
            admin.create_topic(name)
        assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION

    def test_a_name_is_taken_once(self, admin: Admin, kwire_topic: str) -> None:
        with pytest.raises(Refused) as refused:
            admin.create_topic(kwire_topic)
        assert refused.value.code == ErrorCode.TOPIC_ALREADY_EXISTS

    def test_validate_only_creates_nothing(self, admin: Admin, new_name: Callable[[], str]) -> None:
        name = new_name()
        admin.create_topic(name, validate_only=True)

        assert name not in admin.topic_names()

    def test_manual_assignment(self, admin: Admin, new_name: Callable[[], str], settled: Settled) -> None:
        name = new_name()
        ((broker, _, _),) = admin.brokers()
        admin.create_topic(name, assignment=[[broker], [broker]])

        assert settled(lambda: admin.describe_topic(name)).replicas == ((broker,), (broker,))

    def test_what_does_not_exist(self, admin: Admin, new_name: Callable[[], str]) -> None:
        name = new_name()
        for call in (
            lambda: admin.delete_topic(name),
            lambda: admin.create_partitions(name, 3),
            lambda: admin.topic_configs(name),
        ):
            with pytest.raises(Refused) as refused:
                call()
            assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_create_partitions(self, admin: Admin, driver: Driver, kwire_topic: str, settled: Settled) -> None:
        driver.produce(kwire_topic, cases.numbered(1))
        admin.create_partitions(kwire_topic, 4)

        def assert_grown() -> None:
            assert len(admin.describe_topic(kwire_topic).replicas) == 4

        settled(assert_grown)
        assert settled(lambda: driver.bounds(kwire_topic, partition=3)) == Bounds(0, 0)
        assert driver.bounds(kwire_topic) == Bounds(0, 1)
        for fewer in (4, 2):
            with pytest.raises(Refused) as refused:
                admin.create_partitions(kwire_topic, fewer)
            assert refused.value.code == ErrorCode.INVALID_PARTITIONS

    def test_delete_records(self, admin: Admin, driver: Driver, kwire_topic: str) -> None:
        driver.produce(kwire_topic, cases.numbered(10))

        assert admin.delete_records(kwire_topic, 4) == 4
        assert driver.bounds(kwire_topic) == Bounds(4, 10)
        assert driver.consume(kwire_topic, 1, start=0, reset="earliest")[0].offset == 4
        with pytest.raises(Refused) as refused:
            admin.delete_records(kwire_topic, 11)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert admin.delete_records(kwire_topic, -1) == 10
        assert driver.bounds(kwire_topic) == Bounds(10, 10)
        assert driver.produce(kwire_topic, cases.numbered(1)) == [10]

    def test_the_cluster(self, admin: Admin, kwire_broker: Any) -> None:
        ((_, host, port),) = admin.brokers()
        assert (host, port) == (kwire_broker.host, kwire_broker.port)

    def test_alter_configs_replaces_all(self, admin: Admin, kwire_topic: str, settled: Settled) -> None:
        admin.replace_topic_configs(kwire_topic, {RETENTION: "1000", "segment.bytes": "2000000"})
        admin.replace_topic_configs(kwire_topic, {RETENTION: "5000"})

        def assert_replaced() -> None:
            settings = admin.topic_configs(kwire_topic)
            assert settings[RETENTION] == Setting("5000", overridden=True)
            assert settings["segment.bytes"] == Setting(str(1024**3), overridden=False)

        settled(assert_replaced)
        with pytest.raises(Refused) as refused:
            admin.replace_topic_configs(kwire_topic, {RETENTION: "soon"})
        assert refused.value.code == ErrorCode.INVALID_CONFIG

    def test_a_lowered_limit_acts_at_once(
        self, admin: Admin, driver: Driver, kwire_topic: str, settled: Settled
    ) -> None:
        driver.produce(kwire_topic, cases.numbered(1, size=5000))
        admin.replace_topic_configs(kwire_topic, {"max.message.bytes": "1000"})

        def assert_refused() -> None:
            with pytest.raises(Refused) as refused:
                driver.produce(kwire_topic, cases.numbered(1, size=5000))
            assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE

        settled(assert_refused)


class IncrementalAdminSuite:
    """Single changes of configs, of brokers too, and offsets by their kind."""

    def test_change_topic_configs(
        self, admin: IncrementalAdmin, kwire_topic_factory: Callable[..., str], settled: Settled
    ) -> None:
        topic = kwire_topic_factory(configs={"segment.bytes": "2000000", "cleanup.policy": "delete"})
        admin.change_configs("topic", topic, [("set", RETENTION, "1000"), ("append", "cleanup.policy", "compact")])

        def assert_set() -> None:
            settings = admin.topic_configs(topic)
            assert settings[RETENTION] == Setting("1000", overridden=True)
            assert set(settings["cleanup.policy"].value.split(",")) == {"delete", "compact"}
            assert settings["segment.bytes"] == Setting("2000000", overridden=True)

        settled(assert_set)
        admin.change_configs("topic", topic, [("delete", RETENTION, None), ("subtract", "cleanup.policy", "delete")])

        def assert_undone() -> None:
            settings = admin.topic_configs(topic)
            assert settings[RETENTION] == Setting(WEEK, overridden=False)
            assert settings["cleanup.policy"].value == "compact"

        settled(assert_undone)

    @pytest.mark.parametrize(
        "change",
        [("set", RETENTION, "soon"), ("set", "no.such.config", "1"), ("append", RETENTION, "1")],
    )
    def test_refused_changes(self, admin: IncrementalAdmin, kwire_topic: str, change: tuple[str, str, str]) -> None:
        with pytest.raises(Refused) as refused:
            admin.change_configs("topic", kwire_topic, [change])
        assert refused.value.code == ErrorCode.INVALID_CONFIG

    def test_change_broker_configs(self, admin: IncrementalAdmin, kwire_topic: str, settled: Settled) -> None:
        ((broker, _, _),) = admin.brokers()
        admin.change_configs("broker", str(broker), [("set", "log.index.interval.bytes", "5000")])

        def assert_inherited() -> None:
            assert admin.broker_configs(str(broker))["log.index.interval.bytes"] == Setting("5000", overridden=True)
            assert admin.topic_configs(kwire_topic)["index.interval.bytes"].value == "5000"

        try:
            settled(assert_inherited)
        finally:
            admin.change_configs("broker", str(broker), [("delete", "log.index.interval.bytes", None)])

    def test_a_read_only_broker_config_stays(self, admin: IncrementalAdmin) -> None:
        ((broker, _, _),) = admin.brokers()
        with pytest.raises(Refused) as refused:
            admin.change_configs("broker", str(broker), [("set", "auto.create.topics.enable", "false")])
        assert refused.value.code in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG)

    def test_list_offsets(self, admin: IncrementalAdmin, driver: Driver, kwire_topic: str) -> None:
        records = cases.numbered(10)
        driver.produce(kwire_topic, records[5:] + records[:5])

        found = {spec: admin.list_offset(kwire_topic, spec) for spec in (-1, -2, -3, cases.BASE_TIME + 7)}
        assert found == {-1: 10, -2: 0, -3: 4, cases.BASE_TIME + 7: 2}
        admin.delete_records(kwire_topic, 3)
        assert admin.list_offset(kwire_topic, -2) == 3
