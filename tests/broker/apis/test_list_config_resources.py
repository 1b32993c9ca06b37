"""ListConfigResources: by type, in the version that has types."""

from __future__ import annotations

import pytest

from kwire.metadata.changes import BrokerRegistered, ConfigsChanged
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from tests.broker.apis.configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from tests.broker.scene import NEIGHBOUR, Scene, running

BROKERS = [("1", BROKER), ("2", BROKER)]
LOGGERS = [("1", BROKER_LOGGER), ("2", BROKER_LOGGER)]
TOPICS = [("a", TOPIC), ("b", TOPIC)]
GROUPS = [("g", GROUP)]


async def ask(scene: Scene, *kinds: int, version: int = 1) -> ListConfigResourcesResponse:
    for name in ("b", "a"):
        await scene.create(name)
    configs = {"consumer.session.timeout.ms": "50000"}
    await scene.broker.store.commit([BrokerRegistered(NEIGHBOUR), ConfigsChanged("group", "g", configs)])
    return await scene.call(ListConfigResourcesRequest(resource_types=list(kinds)), version)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((), TOPICS + BROKERS + LOGGERS + GROUPS),
        ((TOPIC,), TOPICS),
        ((BROKER, TOPIC, BROKER), TOPICS + BROKERS),
        ((BROKER_LOGGER,), LOGGERS),
        ((CLIENT_METRICS,), []),
        ((GROUP, CLIENT_METRICS), GROUPS),
    ],
)
async def test_types(kinds: tuple[int, ...], expected: list[tuple[str, int]], autojump_clock) -> None:
    async with running() as scene:
        response = await ask(scene, *kinds)
        assert response.error_code == 0
        assert sorted((each.resource_name, each.resource_type) for each in response.config_resources) == sorted(
            expected
        )


@pytest.mark.parametrize("kinds", [(0,), (64,), (-1,), (TOPIC, 3)])
async def test_types_that_do_not_exist(kinds: tuple[int, ...], autojump_clock) -> None:
    async with running() as scene:
        response = await ask(scene, *kinds)
        assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


async def test_the_oldest_version_lists_client_metrics_only(autojump_clock) -> None:
    async with running() as scene:
        response = await ask(scene, version=0)
        assert (response.error_code, response.config_resources) == (0, [])
