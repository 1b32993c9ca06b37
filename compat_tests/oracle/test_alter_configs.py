"""AlterConfigs and IncrementalAlterConfigs: each operation, and everything that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.oracle.asking import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, ME, TOPIC, describe
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from compat_tests.oracle.topic_changes import APPEND, DELETE, SET, SUBTRACT, Changes, change, replace
from compat_tests.oracle.topic_configs import CONFIGS, FEATURES_TO_COME
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.list_config_resources import ListConfigResourcesRequest

pytestmark = pytest.mark.xdist_group("oracle")


def shows(side: Side, kind: int, name: str, key: str, value: str | None) -> None:
    """Records what a key has become; waits for it to be `value`."""

    def done(response: object) -> bool:
        configs = response.results[0].configs  # type: ignore[attr-defined]
        return (configs[0].value if configs else None) == value

    side.ask(describe(kind, name, [key], synonyms=True), until=done, note=f"{key} is {value}")


def test_changing_a_topic(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(retention_ms="5")
        steps: list[tuple[Changes, str, str | None]] = [
            ([(SET, "flush.ms", "1000")], "flush.ms", "1000"),
            ([(SET, "flush.ms", "2000"), (DELETE, "retention.ms", None)], "flush.ms", "2000"),
            ([(DELETE, "flush.ms", None)], "flush.ms", str(2**63 - 1)),
            ([(DELETE, "flush.ms", "ignored")], "flush.ms", str(2**63 - 1)),
            ([(APPEND, "cleanup.policy", "compact")], "cleanup.policy", "delete,compact"),
            ([(APPEND, "cleanup.policy", "compact")], "cleanup.policy", "delete,compact"),
            ([(SUBTRACT, "cleanup.policy", "delete")], "cleanup.policy", "compact"),
            ([(SUBTRACT, "cleanup.policy", "delete")], "cleanup.policy", "compact"),
            ([(SET, "cleanup.policy", "delete, compact")], "cleanup.policy", "delete,compact"),
            ([(SET, "cleanup.policy", "delete, compact")], "cleanup.policy", "delete,compact"),
            ([(SUBTRACT, "cleanup.policy", "compact")], "cleanup.policy", "delete,compact"),
            ([(SUBTRACT, "cleanup.policy", ",delete")], "cleanup.policy", "compact"),
            ([(APPEND, "cleanup.policy", "delete,,")], "cleanup.policy", "compact,delete"),
            ([(APPEND, "cleanup.policy", ",")], "cleanup.policy", "compact,delete"),
            ([(APPEND, "cleanup.policy", "")], "cleanup.policy", "compact,delete"),
            ([(DELETE, "cleanup.policy", None)], "cleanup.policy", "delete"),
            ([(SET, "retention.ms", " 7 ")], "retention.ms", "7"),
            ([(SET, "retention.ms", "\uff15")], "retention.ms", "5"),
            (
                [(SET, "leader.replication.throttled.replicas", " , ")],
                "leader.replication.throttled.replicas",
                ",",
            ),
        ]
        for changes, key, value in steps:
            side.ask(change((TOPIC, topic, changes), validate_only=True), note=f"validate {changes}")
            side.ask(change((TOPIC, topic, changes)), note=f"{changes}")
            shows(side, TOPIC, topic, key, value)

    both.agree(scenario)


def test_replacing_a_topics_configs(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in range(3):
            topic = side.topic(f"v{version}", retention_ms="5", flush_ms="5")
            side.ask(replace((TOPIC, topic, [("flush.ms", "7")]), validate_only=True), version, note="validate")
            shows(side, TOPIC, topic, "retention.ms", "5")
            side.ask(replace((TOPIC, topic, [("flush.ms", "7")])), version)
            shows(side, TOPIC, topic, "flush.ms", "7")
            shows(side, TOPIC, topic, "retention.ms", "-1")
            side.ask(replace((TOPIC, topic, [])), version, note="nothing")
            shows(side, TOPIC, topic, "flush.ms", str(2**63 - 1))

    both.agree(scenario)


def test_values_that_a_topic_does_not_take(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for configs in CONFIGS:
            changes = [(SET, key, value) for key, value in configs]
            for version in (0, 1):
                side.ask(change((TOPIC, topic, changes), validate_only=True), version, note=f"{configs}")
            side.ask(replace((TOPIC, topic, configs), validate_only=True), note=f"{configs}")

    both.agree(scenario)


def test_features_to_come(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for configs in FEATURES_TO_COME:
            changes = [(SET, key, value) for key, value in configs]
            side.ask(change((TOPIC, topic, changes), validate_only=True), note=f"{configs}")

    both.agree(scenario, "features to come")


def test_operations(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        cases: list[Changes] = [
            [(SET, "flush.ms", None)],
            [(SET, "flush.ms", None), (SET, "retention.ms", None)],
            [(APPEND, "cleanup.policy", None)],
            [(SUBTRACT, "cleanup.policy", None)],
            [(APPEND, "flush.ms", "1")],
            [(SUBTRACT, "flush.ms", "1")],
            [(APPEND, "compression.type", "lz4")],
            [(APPEND, "no.such.key", "1")],
            [(DELETE, "no.such.key", None)],
            [(SET, "no.such.key", "1")],
            [(SET, "flush.ms", "1"), (SET, "flush.ms", "2")],
            [(SET, "flush.ms", "1"), (DELETE, "flush.ms", None)],
            [(SET, "flush.ms", "1"), (SET, "no.such.key", "2")],
            [(SET, "flush.ms", "abc"), (SET, "retention.ms", "abc")],
            [(SUBTRACT, "cleanup.policy", "delete")],
            [(APPEND, "cleanup.policy", "nonsense")],
            [(APPEND, "cleanup.policy", "")],
            [(SUBTRACT, "cleanup.policy", "")],
            [(APPEND, "leader.replication.throttled.replicas", "nonsense")],
            [(SET, "", "1")],
            [(SET, "flush.ms", "")],
            [],
        ]
        for version in (0, 1):
            for changes in cases:
                side.ask(change((TOPIC, topic, changes), validate_only=True), version, note=f"{changes}")

    both.agree(scenario)


def test_what_breaks_apache_kafka(both: Both) -> None:
    """An unknown operation and a resource named twice, of kwire alone."""
    side = both.sides("breaking")[1]
    topic = side.topic()
    for operation in (4, -1, 127):
        response = side.call(change((TOPIC, topic, [(operation, "flush.ms", "1")])))
        assert response.responses[0].error_code == ErrorCode.INVALID_REQUEST
    response = side.call(replace((TOPIC, topic, [("flush.ms", "1")]), (TOPIC, topic, [("flush.ms", "1")])))
    assert [each.error_code for each in response.responses] == [ErrorCode.INVALID_REQUEST] * 2
    side.close()


def test_resources(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in (0, 1):
            for name in (side.name("absent"), "", ".", "bad name", "a" * 250, "__cluster_metadata"):
                changes = [(SET, "flush.ms", "1")]
                side.ask(change((TOPIC, name, changes)), version, note=f"{name[:20]!r}")
                side.ask(replace((TOPIC, name, [("flush.ms", "1")])), version, note=f"{name[:20]!r}")
                side.ask(replace((TOPIC, name, [])), version, note=f"{name[:20]!r}, nothing")
            for kind in (0, 1, 3, 5, 6, 64, 127, -1):
                side.ask(change((kind, "name", [(SET, "a", "1")])), version, note=f"type {kind}")
                side.ask(replace((kind, "name", [("a", "1")])), version, note=f"type {kind}")
            twice = (TOPIC, topic, [(SET, "flush.ms", "1")])
            side.ask(change(twice, twice, validate_only=True), version, note="twice")
            side.ask(
                change(twice, (TOPIC, side.name("absent"), [(SET, "flush.ms", "1")]), validate_only=True),
                version,
                note="a good and a bad one",
            )
            side.ask(change(), version, note="none")
            side.ask(replace(), version, note="none")

    both.agree(scenario)


def test_client_metrics(both: Both) -> None:
    def scenario(side: Side) -> None:
        request = change((CLIENT_METRICS, "name", [(SET, "interval.ms", "1000")]), validate_only=True)
        side.ask(request, note="type 16")
        side.ask(replace((CLIENT_METRICS, "name", [("interval.ms", "1000")]), validate_only=True), note="type 16")

    both.agree(scenario, "no client metrics subscriptions")


SESSION, HEARTBEAT, ASSIGNMENT = (
    f"consumer.{name}" for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
)


def test_changing_a_group(both: Both) -> None:
    """Set, shown, listed, replaced, taken away; it need not exist.

    The spaces that Apache Kafka takes when it validates are too much for its coordinator.
    """

    def scenario(side: Side) -> None:
        group = side.name("group")

        def listed(*names: str) -> None:
            request = ListConfigResourcesRequest(resource_types=[GROUP])

            def found(response: Any) -> list[str]:
                return sorted(each.resource_name for each in response.config_resources if each.resource_name == group)

            answer = side.call(request, until=lambda response: found(response) == [*names])
            side.record(f"listed {names}", (answer.error_code, found(answer)))

        listed()
        side.ask(change((GROUP, group, [(SET, SESSION, " 50000 ")]), validate_only=True), note="validate")
        side.ask(change((GROUP, group, [(SET, SESSION, "50000")])))
        shows(side, GROUP, group, SESSION, "50000")
        listed(group)
        side.ask(change((GROUP, group, [(SET, HEARTBEAT, "6000"), (SET, ASSIGNMENT, "0")])))
        shows(side, GROUP, group, HEARTBEAT, "6000")
        shows(side, GROUP, group, ASSIGNMENT, "0")
        side.ask(replace((GROUP, group, [(HEARTBEAT, "7000")])))
        shows(side, GROUP, group, HEARTBEAT, "7000")
        shows(side, GROUP, group, SESSION, "45000")
        side.ask(change((GROUP, group, [(DELETE, HEARTBEAT, None)])))
        shows(side, GROUP, group, HEARTBEAT, "5000")
        listed()

    both.agree(scenario)


GROUP_CHANGES: list[Changes] = [
    [(SET, SESSION, "45000")],
    [(SET, SESSION, "60000")],
    [(SET, SESSION, "60001")],
    [(SET, SESSION, "44999")],
    [(SET, SESSION, "0")],
    [(SET, SESSION, "x")],
    [(SET, SESSION, "")],
    [(SET, SESSION, None)],
    [(SET, HEARTBEAT, "4999")],
    [(SET, HEARTBEAT, "15001")],
    [(SET, ASSIGNMENT, "-1")],
    [(SET, ASSIGNMENT, "15001")],
    [(SET, SESSION, "1"), (SET, HEARTBEAT, "1")],
    [(SET, SESSION, "x"), (SET, "nonsense", "1")],
    [(SET, SESSION, "50000"), (SET, SESSION, "50000")],
    [(DELETE, SESSION, None)],
    [(DELETE, "nonsense", None)],
    [(SET, "nonsense", "1")],
    [(SET, "", "1")],
    [(SET, "group.consumer.session.timeout.ms", "50000")],
    [(SET, "consumer.assignor.offload.enable", "true")],
    [(APPEND, SESSION, "1")],
    [(SUBTRACT, SESSION, "1")],
    [(APPEND, "nonsense", "1")],
    [(SET, "share.session.timeout.ms", "45000")],
    [(SET, "share.session.timeout.ms", "0")],
    [(SET, "streams.num.standby.replicas", "x")],
    [],
]


def test_what_a_group_takes(both: Both) -> None:
    def scenario(side: Side) -> None:
        for name in ("name", ""):
            for changes in GROUP_CHANGES:
                side.ask(change((GROUP, name, changes), validate_only=True), note=f"{name!r}: {changes}")
                if all(operation == SET for operation, _, _ in changes):
                    configs = [(key, value) for _, key, value in changes]
                    side.ask(replace((GROUP, name, configs), validate_only=True), note=f"{name!r}: {configs}")

    both.agree(scenario)


def test_group_configs_to_come(both: Both) -> None:
    def scenario(side: Side) -> None:
        for key, value in (("share.session.timeout.ms", "50000"), ("streams.num.standby.replicas", "1")):
            side.ask(change((GROUP, "name", [(SET, key, value)]), validate_only=True), note=key)

    both.agree(scenario, "features to come")


BROKER_CHANGES: list[Changes] = [
    [(SET, "log.retention.ms", "5000")],
    [(SET, "log.retention.ms", "abc")],
    [(SET, "log.retention.ms", "")],
    [(SET, "log.retention.ms", "0")],
    [(SET, "log.retention.hours", "1")],
    [(SET, "log.retention.minutes", "1")],
    [(DELETE, "log.retention.ms", None)],
    [(SET, "retention.ms", "5000")],
    [(SET, "no.such.key", "1")],
    [(SET, "node.id", "7")],
    [(SET, "num.partitions", "7")],
    [(SET, "log.dirs", "/tmp")],
    [(SET, "auto.create.topics.enable", "false")],
    [(DELETE, "num.partitions", None)],
    [(APPEND, "num.partitions", "7")],
    [(SET, "compression.type", "lz4")],
    [(SET, "compression.type", "nonsense")],
    [(APPEND, "compression.type", "lz4")],
    [(APPEND, "log.cleanup.policy", "compact")],
    [(SUBTRACT, "log.cleanup.policy", "compact")],
    [(APPEND, "log.cleanup.policy", "nonsense")],
    [(SET, "log.cleanup.policy", "")],
    [(SET, "message.max.bytes", "-1")],
    [(SET, "message.max.bytes", "5000")],
    [(SET, "min.insync.replicas", "0")],
    [(SET, "max.connections", "1000")],
    [(SET, "max.connections", "-1")],
    [(SET, "max.connections.per.ip", "1000")],
    [(SET, "max.connections.per.ip.overrides", "a:1, b: \uff12 ,")],
    [(SET, "max.connections.per.ip.overrides", "bad host:1")],
    [(SET, "max.connections.per.ip.overrides", "[::1]:1")],
    [(SET, "num.io.threads", "9")],
    [(SET, "num.io.threads", "0")],
    [(SET, "num.io.threads", "1000")],
    [(SET, "background.threads", "11")],
    [(SET, "log.cleaner.threads", "0")],
    [(SET, "log.cleaner.threads", "2")],
    [(SET, "log.cleaner.threads", "9")],
    [(SET, "log.cleaner.io.max.bytes.per.second", "-1")],
    [(SET, "log.cleaner.dedupe.buffer.size", "1048576")],
    [(SET, "log.cleaner.dedupe.buffer.size", "1048577")],
    [(SET, "log.segment.bytes", "100")],
    [(SET, "log.segment.bytes", "1048576")],
    [(SET, "log.roll.ms", "0")],
    [(SET, "log.message.timestamp.type", "LogAppendTime")],
    [(SET, "log.message.timestamp.type", "nonsense")],
    [(SET, "log.preallocate", "maybe")],
    [(SET, "log.flush.interval.ms", "1000")],
    [(SET, "log.retention.ms", "5000"), (SET, "num.partitions", "7")],
    [(SET, "log.retention.ms", "5000"), (SET, "log.retention.ms", "6000")],
    [(SET, "log.retention.ms", None)],
    [(7, "log.retention.ms", "5000")],
    [(SET, "", "1")],
    [],
]


def test_what_a_broker_takes(both: Both) -> None:
    def scenario(side: Side) -> None:
        for name in (ME, ""):
            for changes in BROKER_CHANGES:
                side.ask(change((BROKER, name, changes), validate_only=True), note=f"{name!r}: {changes}")
                if all(operation == SET for operation, _, _ in changes):
                    configs = [(key, value) for _, key, value in changes]
                    if not name and "min.insync.replicas" not in dict(configs):
                        configs.append(("min.insync.replicas", "1"))  # which Apache Kafka does not let go (KIP-966)
                    side.ask(replace((BROKER, name, configs), validate_only=True), note=f"{name!r}: {configs}")
        for name in ("2", "-1", "abc", "01", " 1", "\uff11", "9" * 5000):
            for changes in BROKER_CHANGES[:2]:
                side.ask(change((BROKER, name, changes), validate_only=True), note=f"{name!r}: {changes}")
                configs = [(key, value) for _, key, value in changes]
                side.ask(replace((BROKER, name, configs), validate_only=True), note=f"{name!r}: {configs}")

    both.agree(scenario, "no threads to tune")


def test_changing_the_broker(both: Both) -> None:
    """Also what a topic shows that has the broker's value."""

    def scenario(side: Side) -> None:
        topic = side.topic()

        def ask(name: str, operation: int, value: str | None, default: str, result: str) -> None:
            side.ask(change((BROKER, name, [(operation, "log.flush.interval.ms", value)])), note=f"{name!r} {value}")
            shows(side, BROKER, "", "log.flush.interval.ms", default)
            shows(side, BROKER, ME, "log.flush.interval.ms", result)
            shows(side, TOPIC, topic, "flush.ms", result)

        ask("", SET, "5000", "5000", "5000")
        ask(ME, SET, "6000", "5000", "6000")
        ask("", SET, "7000", "7000", "6000")
        ask(ME, DELETE, None, "7000", "7000")
        side.ask(change((BROKER, "", [(DELETE, "log.flush.interval.ms", None)])), note="the default again")
        shows(side, BROKER, ME, "log.flush.interval.ms", None)

    both.agree(scenario)


def test_loggers(both: Both) -> None:
    def scenario(side: Side) -> None:
        cases: list[Changes] = [
            [(SET, "root", "INFO")],
            [(SET, "root", "info")],
            [(SET, "root", "LOUD")],
            [(SET, "root", None)],
            [(SET, "no.such.logger", "INFO")],
            [(DELETE, "root", None)],
            [(DELETE, "no.such.logger", None)],
            [(APPEND, "root", "INFO")],
            [(SUBTRACT, "root", "INFO")],
            [(SET, "root", "INFO"), (SET, "root", "WARN")],
            [],
        ]
        for version in (0, 1):
            for name in (ME, "2", "", "abc"):
                for changes in cases:
                    request = change((BROKER_LOGGER, name, changes), validate_only=True)
                    side.ask(request, version, note=f"{name!r}: {changes}")
        side.ask(replace((BROKER_LOGGER, ME, [("root", "INFO")])), note="all loggers")

    both.agree(scenario)


def test_defaults_of_topics_that_do_not_go_together(both: Both) -> None:
    """What a topic has of the broker counts beside what it has itself; the broker's own may contradict each other."""
    most, least = "log.cleaner.max.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"
    local = [(SET, "log.local.retention.ms", "100"), (SET, "log.retention.ms", "50")]

    def scenario(side: Side) -> None:
        topic = side.topic()
        for level in ("", ME):
            # Its code alone: Apache Kafka's message has the name of a Java exception in it.
            side.record(f"{local} of {level!r}", side.call(change((BROKER, level, local)), 1).responses[0].error_code)
            side.ask(change((BROKER, level, [(SET, most, "60000")])), note=f"{most} of {level!r}")
            shows(side, BROKER, ME, most, "60000")
            for lag in ("60000", "60001"):
                side.ask(change((TOPIC, topic, [(SET, "min.compaction.lag.ms", lag)])), note=f"at least {lag}")
            side.ask(change((BROKER, level, [(SET, least, "60001")])), note=f"{least} of {level!r}")
            side.ask(change((BROKER, level, [(DELETE, most, None), (DELETE, least, None)])))
            shows(side, BROKER, ME, most, str(2**63 - 1))

    both.agree(scenario)
