"""The fetcher of one leader: which answers are tried again and when, and what one partition does to the others."""

from types import SimpleNamespace

import pytest
import trio

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.log import Log

from .images import topic_id
from .nodes import Cluster

UNKNOWN_CODE = 999


@pytest.fixture
async def cluster(nursery):
    return Cluster(nursery)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
async def test_errors_that_pass_are_tried_again_after_a_while(cluster, autojump_clock, code):
    await cluster.start(1, 2)
    cluster[1].answer[topic_id("t"), 0] = code
    await cluster.create()
    began = trio.current_time()
    assert await cluster[1].produce(b"a") is ErrorCode.NONE
    assert 1 <= trio.current_time() - began < 1.6


async def test_a_fenced_follower_waits_for_the_metadata(cluster, autojump_clock):
    await cluster.start(1, 2)
    cluster[1].answer[topic_id("t"), 0] = ErrorCode.FENCED_LEADER_EPOCH
    await cluster.create()
    assert await cluster[1].produce(b"a", timeout_s=20) is ErrorCode.REQUEST_TIMED_OUT
    await cluster.elect(1)
    assert await cluster[1].produce(b"b", timeout_s=20) is ErrorCode.NONE


async def test_an_answer_that_makes_no_sense_ends_nothing(cluster, autojump_clock):
    await cluster.start(1, 2)
    cluster[1].answer[topic_id("t"), 0] = UNKNOWN_CODE
    await cluster.create()
    assert await cluster[1].produce(b"a") is ErrorCode.NONE


async def test_a_fault_in_one_partition_keeps_no_other_from_being_fetched(cluster, autojump_clock, monkeypatch):
    await cluster.start(1, 2)
    await cluster.create("faulty")
    await cluster.create("sound")
    append = Log.append_as_follower

    async def faulty(log, records, leader_epoch):
        if log.topic == "faulty":
            raise ValueError("on purpose")
        return await append(log, records, leader_epoch)

    monkeypatch.setattr(Log, "append_as_follower", faulty)
    await cluster[1].append(b"a", topic="faulty")
    for number in range(5):
        assert await cluster[1].produce(b"%d" % number, topic="sound") is ErrorCode.NONE
        await trio.sleep(1.5)
    fetches = len(cluster[1].fetches)
    await trio.sleep(10)
    assert len(cluster[1].fetches) - fetches < 25
    monkeypatch.undo()
    await cluster.elect(1, "faulty")  # in a new leader epoch it is tried again
    assert await cluster[1].produce(b"b", topic="faulty") is ErrorCode.NONE
    assert cluster[2].values("faulty") == [b"a", b"b"]


async def test_the_follower_reconnects(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    await trio.sleep(1.5)
    cluster.network.reset("broker-1")
    assert await cluster[1].produce(b"a") is ErrorCode.NONE


async def test_partitions_that_stopped_being_fetched_go_to_another_leader(cluster, autojump_clock):
    """The old leader learns first that it is none any more."""
    await cluster.start(1, 2, 3)
    for topic in ("a", "b"):
        await cluster.create(topic, replicas=(1, 2, 3))
        assert await cluster[1].produce(b"before", topic=topic) is ErrorCode.NONE
        cluster[1].answer[topic_id(topic), 0] = ErrorCode.FENCED_LEADER_EPOCH
        await trio.sleep(2)
        cluster[1].answer[topic_id(topic), 0] = ErrorCode.FENCED_LEADER_EPOCH
        await trio.sleep(2)
    for topic in ("a", "b"):
        await cluster.elect(3, topic)
        assert await cluster[3].produce(b"after", topic=topic) is ErrorCode.NONE
        assert cluster[2].values(topic) == [b"before", b"after"]


@pytest.mark.plain
async def test_a_follower_without_room_goes_on_when_there_is_some(cluster, autojump_clock, monkeypatch):
    await cluster.start(1, 2)
    await cluster.create()
    assert await cluster[1].produce(b"a") is ErrorCode.NONE
    log_dir = cluster[2].partition().log.log_dir

    def check(size, *, coordinator=False):
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")

    monkeypatch.setattr(log_dir, "room", SimpleNamespace(check=check))
    assert await cluster[1].produce(b"b", timeout_s=5) is ErrorCode.REQUEST_TIMED_OUT
    assert log_dir.online
    monkeypatch.undo()
    assert await cluster[1].produce(b"c") is ErrorCode.NONE
    assert cluster[2].values() == [b"a", b"b", b"c"]
