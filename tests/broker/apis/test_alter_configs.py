"""AlterConfigs and IncrementalAlterConfigs: what they change, what they refuse, and that validating changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pytest

from kwire.ports.executor import InlineExecutor
from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages import alter_configs, incremental_alter_configs
from kwire.protocol.messages.alter_configs import AlterConfigsRequest
from kwire.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kwire.security.authorizer import Operation
from tests.broker.apis.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    ME,
    TOPIC,
    UNAUTHORIZED,
    described,
    value,
)
from tests.broker.scene import Scene, running

SET, DELETE, APPEND, SUBTRACT = range(4)

Changes = Sequence[tuple[int, str, str | None]]
"""(operation, key, value)"""
Configs = Sequence[tuple[str, str | None]]
"""(key, value)"""
Told = list[tuple[int, str | None]]
"""(error code, message) of each resource."""


async def change(scene: Scene, *resources: tuple[int, str, Changes], validate_only: bool = False) -> Told:
    request = IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=text)
                    for operation, key, text in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=validate_only,
    )
    return told(await scene.call(request), request)


async def replace(scene: Scene, *resources: tuple[int, str, Configs], validate_only: bool = False) -> Told:
    request = AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[alter_configs.AlterableConfig(name=key, value=text) for key, text in configs],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    return told(await scene.call(request), request)


def told(
    response: alter_configs.AlterConfigsResponse | incremental_alter_configs.IncrementalAlterConfigsResponse,
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
) -> Told:
    """Each resource is answered in its place."""
    answered = [(each.resource_type, each.resource_name) for each in response.responses]
    assert answered == [(each.resource_type, each.resource_name) for each in request.resources]
    return [(each.error_code, each.error_message) for each in response.responses]


DONE = (0, None)


def set_in(scene: Scene, topic: str = "t") -> dict[str, str]:
    """What is set for a topic itself."""
    return dict(scene.broker.store.image.config("topic", topic))


# Topics


async def test_each_operation_on_a_topic(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", retention_ms="5", cleanup_policy="delete")
        steps: list[tuple[Changes, dict[str, str]]] = [
            ([(SET, "flush.ms", "7")], {"retention.ms": "5", "cleanup.policy": "delete", "flush.ms": "7"}),
            ([(DELETE, "retention.ms", None), (DELETE, "flush.ms", "x")], {"cleanup.policy": "delete"}),
            ([(APPEND, "cleanup.policy", "compact")], {"cleanup.policy": "delete,compact"}),
            ([(APPEND, "cleanup.policy", "compact")], {"cleanup.policy": "delete,compact"}),
            ([(SUBTRACT, "cleanup.policy", "delete")], {"cleanup.policy": "compact"}),
            ([(DELETE, "cleanup.policy", None)], {}),
        ]
        before = set_in(scene)
        for changes, after in steps:
            assert await change(scene, (TOPIC, "t", changes), validate_only=True) == [DONE]
            assert set_in(scene) == before
            assert await change(scene, (TOPIC, "t", changes)) == [DONE]
            assert set_in(scene) == after
            before = after


async def test_a_replacement_leaves_nothing_else(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", retention_ms="5", flush_ms="5")
        assert await replace(scene, (TOPIC, "t", [("flush.ms", "7")]), validate_only=True) == [DONE]
        assert set_in(scene) == {"retention.ms": "5", "flush.ms": "5"}
        assert await replace(scene, (TOPIC, "t", [("flush.ms", "7")])) == [DONE]
        assert set_in(scene) == {"flush.ms": "7"}
        assert await replace(scene, (TOPIC, "t", [])) == [DONE]
        assert set_in(scene) == {}


async def test_a_change_is_in_force_when_it_is_answered(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await change(scene, (TOPIC, "t", [(SET, "max.message.bytes", "100")]))
        assert (await scene.produce("t", b"v" * 200)).error_code == ErrorCode.MESSAGE_TOO_LARGE
        await replace(scene, (TOPIC, "t", []))
        assert (await scene.produce("t", b"v" * 200)).error_code == 0


BAD_CONFIG = [
    ([("no.such.key", "1")], "Unknown topic config name: no.such.key"),
    ([("flush.ms", "abc")], "Invalid value abc for configuration flush.ms: Not a number of type LONG"),
    ([("retention.ms", "-2")], "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
    ([("flush.ms", "5"), ("no.such.key", "1")], "Unknown topic config name: no.such.key"),
]


@pytest.mark.parametrize(("configs", "message"), BAD_CONFIG)
async def test_values_that_a_topic_does_not_take(configs: Configs, message: str, autojump_clock) -> None:
    """Of the changes to a resource all are made or none."""
    async with running() as scene:
        await scene.create("t", flush_ms="7")
        refused = [(ErrorCode.INVALID_CONFIG, message)]
        assert await change(scene, (TOPIC, "t", [(SET, key, text) for key, text in configs])) == refused
        assert await replace(scene, (TOPIC, "t", configs)) == refused
        assert set_in(scene) == {"flush.ms": "7"}


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ([(4, "flush.ms", "1")], ErrorCode.INVALID_REQUEST, "Unknown operations type 4"),
        ([(-1, "flush.ms", "1")], ErrorCode.INVALID_REQUEST, "Unknown operations type -1"),
        ([(SET, "flush.ms", None)], ErrorCode.INVALID_REQUEST, "Null value not supported for : flush.ms"),
        (
            [(SET, "flush.ms", "1"), (DELETE, "flush.ms", None)],
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            [(APPEND, "flush.ms", "1")],
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key flush.ms because its type is not LIST.",
        ),
    ],
)
async def test_changes_that_make_no_sense(changes: Changes, code: ErrorCode, message: str, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        assert await change(scene, (TOPIC, "t", changes)) == [(code, message)]
        assert set_in(scene) == {}


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ([("flush.ms", None)], "Null value not supported for : flush.ms"),
        ([("flush.ms", "1"), ("flush.ms", "2")], "Error due to duplicate config keys"),
    ],
)
async def test_replacements_that_make_no_sense(configs: Configs, message: str, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        assert await replace(scene, (TOPIC, "t", configs)) == [(ErrorCode.INVALID_REQUEST, message)]
        assert set_in(scene) == {}


ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"


@pytest.mark.parametrize("name", [ME, ""])
async def test_what_later_bounds_exclude_is_capped(name: str, autojump_clock) -> None:
    """The rest of what was set at run time stays as it is."""
    files = MemoryFileSystem()
    async with running(files=files) as scene:
        changes = [(SET, ASSIGNMENT_INTERVAL, "9000"), (SET, "log.flush.interval.ms", "7")]
        assert await change(scene, (BROKER, name, changes)) == [DONE]
        assert scene.broker.config[ASSIGNMENT_INTERVAL] == 9000
        too_much = (
            ErrorCode.INVALID_REQUEST,
            f"{ASSIGNMENT_INTERVAL} must be less than or equal to group.consumer.max.assignment.interval.ms",
        )
        assert await change(scene, (BROKER, name, [(SET, ASSIGNMENT_INTERVAL, "15001")])) == [too_much]
    async with running({"group.consumer.max.assignment.interval.ms": "5000"}, files=files) as scene:
        assert scene.broker.config[ASSIGNMENT_INTERVAL] == 5000
        assert scene.broker.config["log.flush.interval.ms"] == 7


# Resources


NO_RESOURCE = [
    (TOPIC, "absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'absent' does not exist."),
    (TOPIC, "", ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
    (TOPIC, ".", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '.' is not allowed"),
    (BROKER, "2", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 2"),
    (BROKER, "abc", ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: abc"),
    (GROUP, "", ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
    (GROUP, "g", ErrorCode.INVALID_CONFIG, "Unknown group config name: a"),
    (CLIENT_METRICS, "m", ErrorCode.INVALID_REQUEST, "This version of kwire has no client metrics subscriptions."),
    (3, "name", ErrorCode.INVALID_REQUEST, "Unknown resource type 3"),
    (-1, "name", ErrorCode.INVALID_REQUEST, "Unknown resource type -1"),
]


@pytest.mark.parametrize(("kind", "name", "code", "message"), NO_RESOURCE)
async def test_a_bad_resource_does_not_harm_the_others(
    kind: int, name: str, code: ErrorCode, message: str, autojump_clock
) -> None:
    async with running() as scene:
        await scene.create("t")
        changed = await change(scene, (kind, name, [(SET, "a", "1")]), (TOPIC, "t", [(SET, "flush.ms", "1")]))
        assert changed == [(code, message), DONE]
        assert set_in(scene) == {"flush.ms": "1"}
        replaced = await replace(scene, (kind, name, [("a", "1")]), (TOPIC, "t", [("flush.ms", "2")]))
        assert replaced == [(code, message), DONE]
        assert set_in(scene) == {"flush.ms": "2"}


async def test_a_resource_named_twice(autojump_clock) -> None:
    async with running() as scene:
        for name in ("t", "u"):
            await scene.create(name)
        twice = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        changes = [(TOPIC, name, [(SET, "flush.ms", "1")]) for name in ("t", "u", "t")]
        assert await change(scene, *changes) == [twice, DONE, twice]
        replacements = [(TOPIC, name, [("flush.ms", "2")]) for name in ("t", "u", "t")]
        assert await replace(scene, *replacements) == [twice, DONE, twice]
        assert (set_in(scene, "t"), set_in(scene, "u")) == ({}, {"flush.ms": "2"})


async def test_who_may_not_alter_configs(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.allow(Operation.ALTER, Operation.DESCRIBE_CONFIGS)
        for kind, refused in UNAUTHORIZED.items():
            name = "t" if kind == TOPIC else ME
            assert await change(scene, (kind, name, [(SET, "flush.ms", "1")])) == [refused]
            if kind != BROKER_LOGGER:
                assert await replace(scene, (kind, name, [("flush.ms", "1")])) == [refused]
        assert set_in(scene) == {}


# Brokers


async def test_a_brokers_value_goes_before_that_of_all(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")

        async def seen() -> tuple[str | None, str | None]:
            key = "log.flush.interval.ms"
            return await value(scene, BROKER, ME, key), await value(scene, TOPIC, "t", "flush.ms")

        async def set_at(name: str, operation: int, text: str | None) -> None:
            changes = [(operation, "log.flush.interval.ms", text)]
            assert await change(scene, (BROKER, name, changes), validate_only=True) == [DONE]
            assert await change(scene, (BROKER, name, changes)) == [DONE]

        unset = await seen()
        await set_at("", SET, "5000")
        assert await seen() == ("5000", "5000")
        await set_at(ME, SET, "6000")
        assert await seen() == ("6000", "6000")
        await set_at("", SET, "7000")
        assert await seen() == ("6000", "6000")
        assert scene.log("t").config.flush_ms == 6000
        await set_at(ME, DELETE, None)
        assert await seen() == ("7000", "7000")
        assert await value(scene, BROKER, "", "log.flush.interval.ms") == "7000"
        assert await replace(scene, (BROKER, "", [])) == [DONE]
        assert await seen() == unset
        assert await described(scene, BROKER, "") == {}


async def test_what_a_broker_refuses_stays_as_it_was(autojump_clock) -> None:
    async with running() as scene:
        for name in (ME, ""):
            for key, text in (("num.partitions", "7"), ("log.retention.ms", "abc"), ("log.dirs", "x")):
                for ((code, message),) in (
                    await change(scene, (BROKER, name, [(SET, key, text)])),
                    await replace(scene, (BROKER, name, [(key, text)])),
                ):
                    assert code == ErrorCode.INVALID_REQUEST
                    assert key in message
        assert not any(kind == "broker" for kind, _ in scene.broker.store.image.configs)


# Loggers


@pytest.fixture
def root_level() -> Iterator[None]:
    """Loggers outlive the test's broker."""
    logger = logging.getLogger("kwire")
    before = logger.level
    yield
    logger.setLevel(before)


async def test_loggers(autojump_clock, root_level: None) -> None:
    async with running() as scene:
        for level in ("ERROR", "DEBUG"):
            changes = [(SET, "root", level)]
            before = await value(scene, BROKER_LOGGER, ME, "root")
            assert await change(scene, (BROKER_LOGGER, ME, changes), validate_only=True) == [DONE]
            assert await value(scene, BROKER_LOGGER, ME, "root") == before
            assert await change(scene, (BROKER_LOGGER, ME, changes)) == [DONE]
            assert await value(scene, BROKER_LOGGER, ME, "root") == level


LOGGER_REFUSALS: list[tuple[str, Changes, ErrorCode, str]] = [
    (ME, [(SET, "no.such.logger", "INFO")], ErrorCode.INVALID_CONFIG, "Logger no.such.logger does not exist!"),
    (ME, [(SET, "root", "LOUD")], ErrorCode.INVALID_CONFIG, "Cannot set the log level of root to LOUD"),
    (ME, [(DELETE, "root", None)], ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger"),
    (ME, [(APPEND, "root", "INFO")], ErrorCode.INVALID_REQUEST, "APPEND operation is not allowed"),
    ("2", [(SET, "root", "INFO")], ErrorCode.INVALID_REQUEST, "Unexpected node id. Expected 1, but received 2"),
    ("", [(SET, "root", "INFO")], ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: "),
]


@pytest.mark.parametrize(("name", "changes", "code", "message"), LOGGER_REFUSALS)
async def test_changes_of_loggers_that_are_refused(
    name: str, changes: Changes, code: ErrorCode, message: str, autojump_clock
) -> None:
    async with running() as scene:
        before = await described(scene, BROKER_LOGGER, ME)
        ((told_code, told_message),) = await change(
            scene, (BROKER_LOGGER, name, [(SET, "kwire.broker.dispatch", "FATAL"), *changes])
        )
        assert told_code == code
        assert told_message.startswith(message)
        assert await described(scene, BROKER_LOGGER, ME) == before


async def test_loggers_are_not_replaced(autojump_clock) -> None:
    async with running() as scene:
        refused = (ErrorCode.INVALID_REQUEST, "Unknown resource type 8")
        assert await replace(scene, (BROKER_LOGGER, ME, [("root", "INFO")])) == [refused]


async def test_background_threads_are_changed_at_run_time_and_at_a_start(
    autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(InlineExecutor, "resize", lambda _, threads: sizes.append(threads))
    async with running({"background.threads": "7"}) as scene:
        assert sizes[-1] == 7
        assert await change(scene, (BROKER, ME, [(SET, "background.threads", "3")])) == [(0, None)]
        assert sizes[-1] == 3
    sizes.clear()
    async with running({"background.threads": "7"}, files=scene.files):
        assert sizes[-1] == 3
