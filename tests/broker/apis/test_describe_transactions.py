"""DescribeTransactions: the state of transactional ids, and what one may see of it."""

from __future__ import annotations

from kwire.protocol.errors import ErrorCode
from kwire.security.authorizer import Operation
from tests.broker.apis.transactions import add, begin, coordinate, describe, end, partitions, until
from tests.broker.scene import running


async def test_from_the_beginning_to_the_end(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic", 2)
        await scene.create("another")
        producer = await begin(scene)
        empty = await describe(scene)
        assert (empty.error_code, empty.transactional_id, empty.transaction_state) == (0, "t", "Empty")
        assert (empty.transaction_timeout_ms, empty.transaction_start_time_ms) == (60_000, -1)
        assert (empty.producer_id, empty.producer_epoch, empty.topics) == (*producer, [])
        before = scene.broker.clock.wall_ms()
        await add(scene, producer, [*partitions(1, 0), *partitions(0, topic="another")])
        ongoing = await describe(scene)
        assert before <= ongoing.transaction_start_time_ms <= scene.broker.clock.wall_ms()
        assert [(topic.topic, topic.partitions) for topic in ongoing.topics] == [("another", [0]), ("topic", [0, 1])]
        await end(scene, producer)
        complete = await until(scene, "CompleteCommit")
        assert complete.transaction_start_time_ms == ongoing.transaction_start_time_ms


async def test_what_is_not_to_be_described(autojump_clock) -> None:
    async with running() as scene:
        assert (await describe(scene)).error_code == ErrorCode.NOT_COORDINATOR
        await coordinate(scene)
        assert (await describe(scene)).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert (await describe(scene, "")).error_code == ErrorCode.INVALID_REQUEST


async def test_what_one_may_see(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        await scene.create("another")
        producer = await begin(scene)
        await add(scene, producer, [*partitions(0), *partitions(0, topic="another")])
        await scene.allow(Operation.DESCRIBE, names=["t", "topic"])
        assert [topic.topic for topic in (await describe(scene)).topics] == ["topic"]
        await scene.allow(Operation.DESCRIBE, names=["topic"])
        assert (await describe(scene)).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
