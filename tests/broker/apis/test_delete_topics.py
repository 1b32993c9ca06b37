"""DeleteTopics: by name and by id, each once, and where deletion is switched off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from kwire.security.authorizer import Operation
from tests.broker.scene import Scene, running

BY_ID = 6
UNKNOWN_ID = b"an unknown topic"


async def delete(
    scene: Scene, *names: str, ids: Sequence[bytes] = (), also: Sequence[DeleteTopicState] = (), version: int = 6
) -> list[DeletableTopicResult]:
    if version < BY_ID:
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=1000)
    else:
        topics = [DeleteTopicState(name=name) for name in names]
        topics += [DeleteTopicState(name=None, topic_id=topic_id) for topic_id in ids]
        request = DeleteTopicsRequest(topics=topics + list(also), timeout_ms=1000)
    return (await scene.call(request, version)).responses


def told(results: Sequence[DeletableTopicResult]) -> dict[Any, int]:
    """Error codes by name, or by id where there is no name; each but once."""
    codes = {result.topic_id if result.name is None else result.name: result.error_code for result in results}
    assert len(codes) == len(results)
    return codes


def left(scene: Scene) -> set[str]:
    return set(scene.broker.store.image.topics)


@pytest.mark.parametrize("version", range(1, 7))
async def test_by_name(version: int, autojump_clock) -> None:
    async with running() as scene:
        for name in "abc":
            await scene.create(name, 2)
        a = scene.id_of("a")
        results = await delete(scene, "a", "absent", "c", "", version=version)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert told(results) == {"a": 0, "absent": missing, "c": 0, "": missing}
        messages = {result.name: result.error_message for result in results}
        assert messages["a"] is None
        text = "This server does not host this topic-partition."
        assert messages["absent"] == (text if version >= 5 else None)
        ids = {result.name: result.topic_id for result in results}
        assert ids["a"] == (a if version >= BY_ID else uuids.ZERO)
        assert left(scene) == {"b"}
        assert {topic for topic, _ in scene.broker.logs.logs} == {"b"}


@pytest.mark.parametrize("version", [1, 6])
async def test_a_name_given_twice_is_told_once_and_not_deleted(version: int, autojump_clock) -> None:
    async with running() as scene:
        for name in "ab":
            await scene.create(name)
        results = await delete(scene, "a", "b", "a", version=version)
        assert told(results) == {"a": ErrorCode.INVALID_REQUEST, "b": 0}
        assert left(scene) == {"a"}


async def test_by_id(autojump_clock) -> None:
    async with running() as scene:
        ids = {name: await scene.create(name) for name in "abc"}
        results = await delete(scene, "c", ids=[ids["a"], UNKNOWN_ID, ids["b"], ids["b"]])
        assert told(results) == {
            "a": 0,
            UNKNOWN_ID: ErrorCode.UNKNOWN_TOPIC_ID,
            ids["b"]: ErrorCode.INVALID_REQUEST,
            "c": 0,
        }
        assert {result.name: result.topic_id for result in results}["a"] == ids["a"]
        assert left(scene) == {"b"}


async def test_name_and_id_of_one_topic(autojump_clock) -> None:
    async with running() as scene:
        ids = {name: await scene.create(name) for name in "ab"}
        both = DeleteTopicState(name="a", topic_id=ids["a"])
        neither = DeleteTopicState(name=None, topic_id=uuids.ZERO)
        refused = ErrorCode.INVALID_REQUEST
        assert told(await delete(scene, "b", ids=[ids["b"]], also=[both, neither])) == {
            "a": refused,
            uuids.ZERO: refused,
            "b": refused,
        }
        assert left(scene) == {"a", "b"}


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED), (6, ErrorCode.TOPIC_DELETION_DISABLED)],
)
async def test_where_deletion_is_switched_off(version: int, code: ErrorCode, autojump_clock) -> None:
    async with running({"delete.topic.enable": "false"}) as scene:
        await scene.create("a")
        assert told(await delete(scene, "a", "absent", version=version)) == {"a": code, "absent": code}
        assert left(scene) == {"a"}


@pytest.mark.parametrize("may_describe", [False, True])
async def test_the_name_behind_an_id_is_for_who_may_describe_it(may_describe: bool, autojump_clock) -> None:
    async with running() as scene:
        topic_id = await scene.create("a")
        await scene.allow(*([Operation.DESCRIBE] if may_describe else []))
        (refused,) = await delete(scene, ids=[topic_id])
        assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert (refused.name, refused.topic_id) == ("a" if may_describe else None, topic_id)
        assert told(await delete(scene, "a")) == {"a": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert left(scene) == {"a"}


async def test_what_is_refused_to_everybody_is_refused_for_that(autojump_clock) -> None:
    async with running() as scene:
        ids = {name: await scene.create(name) for name in "abcd"}
        await scene.allow(Operation.DESCRIBE)
        both = DeleteTopicState(name="d", topic_id=ids["d"])
        results = await delete(scene, "a", "b", "b", ids=[ids["c"], ids["c"]], also=[both])
        assert {result.name or result.topic_id: result.error_message for result in results} == {
            "a": "Topic authorization failed.",
            "b": "Duplicate topic name.",
            ids["c"]: "Duplicate topic id.",
            "d": "You may not specify both topic name and topic id.",
        }
        assert len(results) == 4
        assert left(scene) == {"a", "b", "c", "d"}
