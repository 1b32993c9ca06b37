"""DescribeConfigs and ListConfigResources."""

from __future__ import annotations

import pytest

from compat_tests.oracle.asking import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, ME, TOPIC, describe
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kwire.protocol.messages.list_config_resources import ListConfigResourcesRequest

pytestmark = pytest.mark.xdist_group("oracle")

VERSIONS = range(1, 5)
NO_ELR = "no eligible leader replicas"


def test_topics(both: Both) -> None:
    def scenario(side: Side) -> None:
        plain = side.topic()
        changed = side.topic(
            "changed",
            cleanup_policy="delete, compact",
            retention_ms="5",
            max_message_bytes=" 1000 ",
            compression_type="zstd",
            preallocate="TRUE",
            message_timestamp_type="LogAppendTime",
        )
        for version in VERSIONS:
            for name in (plain, changed):
                for synonyms in (False, True):
                    request = describe(TOPIC, name, synonyms=synonyms)
                    side.ask(request, version, note=f"synonyms {synonyms} {name}")

    both.agree(scenario, NO_ELR)


def test_keys(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(retention_ms="5")
        for version in VERSIONS:
            for kind, name in ((TOPIC, topic), (BROKER, ME), (BROKER, "")):
                for keys in (
                    [],
                    ["retention.ms"],
                    ["retention.ms", "log.retention.ms"],
                    ["retention.ms", "retention.ms", "no.such.key"],
                    ["log.retention.hours", "compression.type"],
                    [""],
                    ["no.such.key"],
                ):
                    if kind == BROKER and name and not keys:
                        continue  # all of them: another test's
                    request = describe(kind, name, keys, synonyms=True)
                    side.ask(request, version, note=f"{keys} of {kind}")

    both.agree(scenario, NO_ELR)


def test_resources_that_do_not_exist(both: Both) -> None:
    def scenario(side: Side) -> None:
        side.topic()
        for version in VERSIONS:
            for name in (side.name("absent"), "", ".", "bad name", "a" * 250, "__cluster_metadata"):
                side.ask(describe(TOPIC, name), version, note=f"{name[:20]!r}")
            for name in ("2", "-1", "abc", "01", " 1"):
                side.ask(describe(BROKER, name, ["log.retention.ms"]), version, note=f"broker {name!r}")
                side.ask(describe(BROKER_LOGGER, name, ["none"]), version, note=f"loggers of {name!r}")
            side.ask(describe(BROKER_LOGGER, ""), version, note="loggers of nobody")
            for kind in (0, 1, 3, 5, 6, 64, 127, -1):
                side.ask(describe(kind, "name"), version, note=f"type {kind}")

    both.agree(scenario)


def test_client_metrics_subscriptions(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in VERSIONS:
            for name in ("name", ""):
                side.ask(describe(CLIENT_METRICS, name), version, note=f"metrics {name!r}")

    both.agree(scenario, "no client metrics subscriptions")


def test_groups(both: Both) -> None:
    """Whether there is such a group or not."""

    def scenario(side: Side) -> None:
        for version in VERSIONS:
            for name in ("name", ""):
                side.ask(describe(GROUP, name, synonyms=True), version, note=f"group {name!r}")
            keys = ["consumer.session.timeout.ms", "nonsense", "group.consumer.session.timeout.ms"]
            side.ask(describe(GROUP, "name", keys, synonyms=True), version, note="some keys")

    both.agree(scenario, "defaults for one broker")


def test_several_resources(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        resources = [
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, keys in (
                (TOPIC, topic, ["retention.ms"]),
                (TOPIC, side.name("absent"), None),
                (BROKER, ME, ["log.retention.ms"]),
                (TOPIC, topic, ["flush.ms"]),
            )
        ]
        for version in VERSIONS:
            side.ask(DescribeConfigsRequest(resources=resources), version)
            side.ask(DescribeConfigsRequest(), version, note="none")

    both.agree(scenario)


STARTED_WITH = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "inter.broker.listener.name",
        "listeners",
        "log.dirs",
        "node.id",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "process.roles",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.replication.factor",
        "transaction.state.log.min.isr",
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
    }
)
"""Keys that the two brokers have from their command lines."""


def test_the_broker(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in VERSIONS:
            for synonyms in (False, True):
                response = side.call(describe(BROKER, ME, synonyms=synonyms), version)
                (result,) = response.results
                assert {config.name for config in result.configs} >= STARTED_WITH
                result.configs = [config for config in result.configs if config.name not in STARTED_WITH]
                for config in result.configs:
                    if config.name == "listener.security.protocol.map":
                        config.value, config.config_source, config.synonyms = None, 0, []
                side.record_response(f"DescribeConfigs v{version}, synonyms {synonyms}", response)

    both.agree(scenario, NO_ELR, "defaults for one broker", "listeners are fixed")


def test_documentation(both: Both) -> None:
    """kwire says what a config does in its own words; whether it says anything is Apache Kafka's choice."""

    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in (3, 4):
            for kind, name in ((TOPIC, topic), (BROKER, ME)):
                for documentation in (False, True):
                    response = side.call(describe(kind, name, documentation=documentation), version)
                    told = {
                        config.name: bool(config.documentation)
                        for config in response.results[0].configs
                        if config.name in ("retention.ms", "flush.ms", "log.retention.ms", "num.io.threads")
                    }
                    side.record(f"documentation {documentation} of {kind}", told)

    both.agree(scenario)


def test_loggers(both: Both) -> None:
    """The loggers of a JVM are not those of Python: only what the root logger is told like can be compared."""

    def scenario(side: Side) -> None:
        for version in VERSIONS:
            response = side.call(describe(BROKER_LOGGER, ME, ["root"]), version)
            for config in response.results[0].configs:
                assert config.value in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
                config.value = "level"
            side.record_response(f"the root logger v{version}", response)

    both.agree(scenario)


def test_listing_resources(both: Both) -> None:
    def scenario(side: Side) -> None:
        made = {side.topic("one"), side.topic("two")}
        for kinds in ([], [TOPIC], [BROKER], [BROKER_LOGGER], [CLIENT_METRICS], [GROUP], [TOPIC, BROKER, TOPIC]):
            response = side.call(ListConfigResourcesRequest(resource_types=kinds))
            response.config_resources = [
                each for each in response.config_resources if each.resource_type != TOPIC or each.resource_name in made
            ]
            side.record_response(f"ListConfigResources v1 {kinds}", response)
        for kinds in ([0], [1], [3], [64], [-1], [TOPIC, 3]):
            side.ask(ListConfigResourcesRequest(resource_types=kinds), note=f"{kinds}")
        side.ask(ListConfigResourcesRequest(), 0)

    both.agree(scenario)
