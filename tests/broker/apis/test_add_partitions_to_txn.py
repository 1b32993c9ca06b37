"""AddPartitionsToTxn: by producers, and by brokers, which may only look."""

from __future__ import annotations

import pytest
import trio

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from kwire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kwire.security.authorizer import Operation
from tests.broker.apis import transactions
from tests.broker.apis.test_many_groups import turns_of_another
from tests.broker.apis.transactions import Producer, add, add_as_broker, begin, describe, end, partitions, until
from tests.broker.scene import running

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def asked(
    producer: Producer, *indexes: int, transactional_id: str = "t", verify_only: bool = False, topic: str = "topic"
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=partitions(*indexes, topic=topic),
    )


@pytest.mark.parametrize("version", range(4))
async def test_a_producer_adds_partitions(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic", 3)
        producer = await begin(scene)
        assert await add(scene, producer, partitions(0, 2), version=version) == {("topic", 0): 0, ("topic", 2): 0}
        state = await describe(scene)
        assert (state.transaction_state, [(topic.topic, topic.partitions) for topic in state.topics]) == (
            "Ongoing",
            [("topic", [0, 2])],
        )


@pytest.mark.parametrize("version", range(4))
async def test_a_fenced_producer_is_told_as_its_version_understands(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        first = await begin(scene)
        await begin(scene)
        expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await add(scene, first, partitions(0), version=version) == {("topic", 0): expected}


async def test_one_bad_partition_spoils_the_others(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        assert await add(scene, producer, [*partitions(0, 1), *partitions(0, topic="no")]) == {
            ("topic", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
            ("topic", 1): UNKNOWN,
            ("no", 0): UNKNOWN,
        }
        assert (await describe(scene)).transaction_state == "Empty"


async def test_a_producer_adds_no_internal_topic(autojump_clock) -> None:
    async with running() as scene:
        producer = await begin(scene)
        assert await add(scene, producer, partitions(0, topic="__transaction_state")) == {
            ("__transaction_state", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED
        }


async def test_who_may_add(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        assert await add(scene, producer, partitions(0), "other") == {
            ("topic", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING
        }
        assert await add(scene, producer, partitions(0), "") == {("topic", 0): ErrorCode.INVALID_REQUEST}
        await scene.allow(Operation.WRITE, names=["t"])
        assert await add(scene, producer, partitions(0)) == {("topic", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        await scene.allow(Operation.WRITE, names=["topic"])
        assert await add(scene, producer, partitions(0)) == {
            ("topic", 0): ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        }


@pytest.mark.parametrize("version", [4, 5])
async def test_brokers_ask_for_several_transactions_at_once(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic", 3)
        one, two = await begin(scene, "one"), await begin(scene, "two")
        top, codes = await add_as_broker(
            scene,
            asked(one, 0, 1, transactional_id="one"),
            asked(two._replace(epoch=7), 0, transactional_id="two"),
            asked(two, 9, transactional_id="three"),
            asked(two, 0, transactional_id=""),
            version=version,
        )
        assert top == 0
        assert codes == {
            "one": {("topic", 0): 0, ("topic", 1): 0},
            "two": {("topic", 0): ErrorCode.PRODUCER_FENCED},
            "three": {("topic", 9): UNKNOWN},
            "": {("topic", 0): ErrorCode.INVALID_REQUEST},
        }


async def test_brokers_may_only_look(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic", 3)
        producer = await begin(scene)
        await add(scene, producer, partitions(1))
        _, codes = await add_as_broker(scene, asked(producer, 0, 1, verify_only=True))
        assert codes == {"t": {("topic", 0): ErrorCode.TRANSACTION_ABORTABLE, ("topic", 1): 0}}
        _, codes = await add_as_broker(scene, asked(producer._replace(epoch=3), 1, verify_only=True))
        assert codes == {"t": {("topic", 1): ErrorCode.PRODUCER_FENCED}}
        _, codes = await add_as_broker(scene, asked(producer, 1, verify_only=True, transactional_id="other"))
        assert codes == {"other": {("topic", 1): ErrorCode.INVALID_PRODUCER_ID_MAPPING}}
        assert [topic.partitions for topic in (await describe(scene)).topics] == [[1]]


async def test_a_broker_that_asks_does_not_wait_for_markers(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks again itself: whatever it asks next on the same connection would wait too."""
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        await add(scene, producer, partitions(0))
        let_go = transactions.hold_markers(scene, monkeypatch)
        _, following = await end(scene, producer)
        before = trio.current_time()
        _, codes = await add_as_broker(scene, asked(following, 0))
        assert codes == {"t": {("topic", 0): ErrorCode.CONCURRENT_TRANSACTIONS}}
        assert trio.current_time() == before
        await let_go()
        await until(scene, "CompleteCommit")
        _, codes = await add_as_broker(scene, asked(following, 0))
        assert codes == {"t": {("topic", 0): 0}}


async def test_others_have_their_turn(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        many = [asked(producer, 0, transactional_id=f"{number}") for number in range(20)]
        at_once = await turns_of_another(lambda: add_as_broker(scene, *many))
        monkeypatch.setattr("kwire.ports.turns.TURN_SECONDS", 0.0)
        assert await turns_of_another(lambda: add_as_broker(scene, *many)) >= at_once + 20


async def test_brokers_add_internal_topics(autojump_clock) -> None:
    async with running({"transaction.state.log.num.partitions": "3"}) as scene:
        producer = await begin(scene)
        _, codes = await add_as_broker(scene, asked(producer, 0, topic="__transaction_state"))
        assert codes == {"t": {("__transaction_state", 0): 0}}


async def test_where_records_cannot_say_it_brokers_add_nothing(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        update = FeatureUpdateKey(feature="transaction.version", max_version_level=0, upgrade_type=2)
        assert (await scene.call(UpdateFeaturesRequest(feature_updates=[update]))).error_code == 0
        assert await add_as_broker(scene, asked(producer, 0)) == (ErrorCode.UNSUPPORTED_VERSION, {})


async def test_only_brokers_ask_like_brokers(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        await transactions.allow_all_but(scene, Operation.CLUSTER_ACTION)
        assert await add_as_broker(scene, asked(producer, 0)) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, {})


async def test_the_next_transaction_may_begin_when_the_last_is_complete(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        for _ in range(3):
            assert await add(scene, producer, partitions(0)) == {("topic", 0): 0}
            code, producer = await end(scene, producer)
            assert code == 0
            await until(scene, "CompleteCommit")
