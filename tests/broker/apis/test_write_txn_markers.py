"""WriteTxnMarkers: markers for partitions that this broker leads."""

from __future__ import annotations

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kwire.security.authorizer import Operation
from tests.broker.apis.test_many_groups import turns_of_another
from tests.broker.apis.test_offsets_in_transactions import ADDS, commit, committed, prepare
from tests.broker.apis.transactions import Producer, add, begin, partitions, write
from tests.broker.scene import Scene, running


async def ask(
    scene: Scene,
    producer: Producer,
    topics: dict[str, list[int]],
    *,
    commit: bool = False,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    version: int = 2,
) -> dict[tuple[str, int], int]:
    marker = WritableTxnMarker(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
        topics=[WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
    )
    (told,) = (await scene.call(WriteTxnMarkersRequest(markers=[marker]), version)).markers
    assert told.producer_id == producer.id
    return _codes(told)


def _codes(told: WritableTxnMarkerResult) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in told.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commit", [True, False])
async def test_an_open_transaction_is_ended(version: int, commit: bool, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        await add(scene, producer, partitions(0))
        await write(scene, producer, b"one")
        assert scene.log("topic").last_stable_offset == 0
        assert await ask(scene, producer, {"topic": [0]}, commit=commit, version=version) == {("topic", 0): 0}
        assert scene.log("topic").last_stable_offset == 2


async def test_each_partition_has_a_code_of_its_own(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        assert await ask(scene, Producer(7, 0), {"topic": [0, 1], "no": [0], "__consumer_offsets": [0]}) == {
            ("topic", 0): 0,
            ("topic", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("no", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("__consumer_offsets", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }


async def test_a_partition_led_elsewhere_is_refused(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        await scene.place("topic", 2, 1)
        assert await ask(scene, Producer(7, 0), {"topic": [0]}) == {("topic", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER}


async def test_older_producers_and_coordinators_are_refused(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        topics = {"topic": [0]}
        assert await ask(scene, Producer(7, 3), topics, coordinator_epoch=5) == {("topic", 0): 0}
        older = await ask(scene, Producer(7, 2), topics, coordinator_epoch=5)
        assert older == {("topic", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
        zombie = await ask(scene, Producer(7, 3), topics, coordinator_epoch=4)
        assert zombie == {("topic", 0): ErrorCode.TRANSACTION_COORDINATOR_FENCED}


async def test_the_transaction_version_decides_which_epoch_is_good(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        await add(scene, producer, partitions(0))
        await write(scene, producer, b"one")
        same = await ask(scene, producer, {"topic": [0]}, transaction_version=2)
        assert same == {("topic", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
        next_epoch = Producer(producer.id, producer.epoch + 1)
        for _ in range(2):  # a marker may come again
            assert await ask(scene, next_epoch, {"topic": [0]}, transaction_version=2) == {("topic", 0): 0}


async def test_a_group_coordinator_takes_the_markers_of_its_partitions(autojump_clock) -> None:
    async with running({"offsets.topic.num.partitions": "1"}) as scene:
        await scene.call(FindCoordinatorRequest(coordinator_keys=["group"]), 6)
        told = await ask(scene, Producer(7, 0), {"__consumer_offsets": [0]})
        assert told == {("__consumer_offsets", 0): 0}
        assert scene.log("__consumer_offsets").log_end_offset == 1
        scene.broker.coordinators.groups.resign(0)
        told = await ask(scene, Producer(7, 0), {"__consumer_offsets": [0]})
        assert told == {("__consumer_offsets", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER}


async def test_the_transaction_version_decides_for_the_partitions_of_groups_too(autojump_clock) -> None:
    """A marker of the transaction before that comes again, late, must not end this one."""
    async with running({"offsets.topic.num.partitions": "1"}) as scene:
        producer = await prepare(scene)
        assert await commit(scene, producer, ADDS) == 0
        offsets = {"__consumer_offsets": [0]}
        late = await ask(scene, producer, offsets, commit=True, transaction_version=2)
        assert late == {("__consumer_offsets", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
        assert await committed(scene) == -1
        next_epoch = Producer(producer.id, producer.epoch + 1)
        for _ in range(2):
            told = await ask(scene, next_epoch, offsets, commit=True, transaction_version=2)
            assert told == {("__consumer_offsets", 0): 0}
        assert await committed(scene) == 5


@pytest.mark.parametrize("nobody", [Producer(7, -1), Producer(-1, 0), Producer(-1, -1)])
async def test_of_nobody_there_is_no_marker(nobody: Producer, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        markers = [
            WritableTxnMarker(
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                topics=[WritableTxnMarkerTopic(name="topic", partition_indexes=[0])],
            )
            for producer in (Producer(8, 0), nobody)
        ]
        response = await scene.call(WriteTxnMarkersRequest(markers=markers))
        refused = {("topic", 0): ErrorCode.UNKNOWN_SERVER_ERROR}
        assert [_codes(told) for told in response.markers] == [refused] * 2
        assert scene.log("topic").log_end_offset == 0
        assert await ask(scene, nobody, {"no": [0]}) == {("no", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_of_a_marker_for_no_partition_nothing_is_told(autojump_clock) -> None:
    async with running() as scene:
        response = await scene.call(WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=7)]))
        assert response.markers == []


async def test_others_have_their_turn(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as scene:
        await scene.create("topic", 20)
        everywhere = {"topic": list(range(20))}
        at_once = await turns_of_another(lambda: ask(scene, Producer(7, 0), everywhere))
        monkeypatch.setattr("kwire.ports.turns.TURN_SECONDS", 0.0)
        assert await turns_of_another(lambda: ask(scene, Producer(7, 0), everywhere)) >= at_once + 20


async def test_a_partition_that_is_offline_is_unknown(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        scene.broker.replicas.partition("topic", 0).lose_log()
        told = await ask(scene, Producer(7, 0), {"topic": [0]})
        assert told == {("topic", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_several_markers_of_a_producer_have_one_answer(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic", 2)
        request = WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=7, topics=[WritableTxnMarkerTopic(name="topic", partition_indexes=[partition])]
                )
                for partition in (0, 1)
            ]
        )
        (told,) = (await scene.call(request)).markers
        assert [(part.partition_index, part.error_code) for topic in told.topics for part in topic.partitions] == [
            (0, 0),
            (1, 0),
        ]


async def test_admins_and_brokers_may_write_them(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        for may in (Operation.ALTER, Operation.CLUSTER_ACTION):
            await scene.allow(may)
            assert await ask(scene, Producer(7, 0), {"topic": [0]}) == {("topic", 0): 0}
        await scene.allow(Operation.WRITE)
        refused = await ask(scene, Producer(7, 0), {"topic": [0]})
        assert refused == {("topic", 0): ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
