"""DescribeConfigs: which resources there are, which keys are told, and what with them."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
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
    resource,
)
from tests.broker.scene import Scene, running

DYNAMIC_TOPIC, STATIC_BROKER, DEFAULT, LOGGER = 1, 4, 5, 6
"""Sources."""


async def ask(
    scene: Scene, *resources: DescribeConfigsResource, version: int = 4, **options: Any
) -> list[DescribeConfigsResult]:
    return (await scene.call(DescribeConfigsRequest(resources=list(resources), **options), version)).results


NOT_THERE = [
    (TOPIC, "absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
    (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
    (
        TOPIC,
        "bad name",
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic name is invalid: 'bad name' contains one or more characters other than ASCII alphanumerics, '.', '_' "
        "and '-'",
    ),
    (
        BROKER,
        "2",
        ErrorCode.INVALID_REQUEST,
        "Unexpected broker id, expected 1 or empty string, but received 2",
    ),
    (BROKER, "abc", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: abc"),
    (BROKER, "9" * 5000, ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {'9' * 5000}"),
    (BROKER_LOGGER, "2", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 but received 2"),
    (BROKER_LOGGER, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
    (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"),
    (GROUP, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
]


@pytest.mark.parametrize(("kind", "name", "code", "message"), NOT_THERE)
async def test_a_resource_that_does_not_exist(
    kind: int, name: str, code: ErrorCode, message: str, autojump_clock
) -> None:
    async with running() as scene:
        await scene.create("t")
        refused, told = await ask(scene, resource(kind, name), resource(TOPIC, "t"))
        assert (refused.resource_type, refused.resource_name) == (kind, name)
        assert (refused.error_code, refused.error_message, refused.configs) == (code, message, [])
        assert (told.error_code, told.error_message) == (0, "")  # not null, as in Apache Kafka
        assert told.configs


@pytest.mark.parametrize("kind", [0, 1, 3, 64, -1])
async def test_a_type_of_resource_that_does_not_exist_spoils_the_request(kind: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        results = await ask(scene, resource(TOPIC, "t"), resource(kind, "name"))
        assert [(each.resource_type, each.resource_name) for each in results] == [(TOPIC, "t"), (kind, "name")]
        assert [(each.error_code, each.configs) for each in results] == [(ErrorCode.INVALID_REQUEST, [])] * 2


@pytest.mark.parametrize("name", ["1", "01", "+1", ""])
async def test_names_of_this_broker_and_of_all(name: str, autojump_clock) -> None:
    async with running() as scene:
        (told,) = await ask(scene, resource(BROKER, name, ["num.partitions"]))
        assert (told.resource_name, told.error_code) == (name, 0)
        assert [config.name for config in told.configs] == (["num.partitions"] if name else [])


async def test_client_metrics_have_no_configs(autojump_clock) -> None:
    async with running() as scene:
        (told,) = await ask(scene, resource(CLIENT_METRICS, "name"))
        assert (told.error_code, told.configs) == (0, [])


@pytest.mark.parametrize("keys", [None, [], ["flush.ms", "no.such.key", "flush.ms"], ["no.such.key"]])
async def test_keys(keys: list[str] | None, autojump_clock) -> None:
    """None given means all."""
    async with running() as scene:
        await scene.create("t")
        (told,) = await ask(scene, resource(TOPIC, "t", keys))
        names = [config.name for config in told.configs]
        if keys:
            assert names == [key for key in ["flush.ms"] if key in keys]
        else:
            assert len(names) > 20
            assert len(set(names)) == len(names)


@pytest.mark.parametrize("synonyms", [False, True])
async def test_synonyms_are_for_who_asks(synonyms: bool, autojump_clock) -> None:
    async with running({"log.retention.bytes": "7000"}) as scene:
        await scene.create("t", retention_bytes="5000")
        (told,) = await ask(scene, resource(TOPIC, "t", ["retention.bytes"]), include_synonyms=synonyms)
        (config,) = told.configs
        assert (config.value, config.config_source, config.read_only) == ("5000", DYNAMIC_TOPIC, False)
        assert [(each.name, each.value, each.source) for each in config.synonyms] == (
            [
                ("retention.bytes", "5000", DYNAMIC_TOPIC),
                ("log.retention.bytes", "7000", STATIC_BROKER),
                ("log.retention.bytes", "-1", DEFAULT),
            ]
            if synonyms
            else []
        )


@pytest.mark.parametrize(("version", "documentation"), [(2, False), (3, False), (3, True), (4, False), (4, True)])
async def test_types_and_documentation_came_with_version_3(version: int, documentation: bool, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        (told,) = await ask(
            scene, resource(TOPIC, "t", ["flush.ms"]), version=version, include_documentation=documentation
        )
        (config,) = told.configs
        assert bool(config.documentation) == documentation
        assert config.config_type == (5 if version >= 3 else 0)  # LONG


async def test_secrets_are_not_told(autojump_clock) -> None:
    async with running({"plugin.password": "hush"}) as scene:
        configs = await described(scene, BROKER, ME)
        for name in ("ssl.keystore.password", "plugin.password"):
            assert (configs[name].value, configs[name].is_sensitive) == (None, True)
        assert "hush" not in repr(configs)


async def test_loggers(autojump_clock) -> None:
    async with running() as scene:
        configs = await described(scene, BROKER_LOGGER, ME)
        assert "root" in configs
        assert "kwire.broker.dispatch" in configs
        for config in configs.values():
            assert config.value in ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")
            assert (config.config_source, config.read_only, config.is_sensitive) == (LOGGER, False, False)
        assert list(await described(scene, BROKER_LOGGER, ME, ["root", "no.such.logger"])) == ["root"]


async def test_who_may_not_see_configs(autojump_clock) -> None:
    """Whether there is such a resource is not told either."""
    async with running() as scene:
        await scene.allow(Operation.DESCRIBE, Operation.ALTER_CONFIGS)
        for told in await ask(scene, *(resource(kind, "name") for kind in UNAUTHORIZED)):
            assert (told.error_code, told.error_message) == UNAUTHORIZED[told.resource_type]
            assert told.configs == []
