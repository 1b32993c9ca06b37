"""The ReplicaManager: metadata become logs, roles and fetchers; what is gone goes; dirs fail; restarts remember."""

import errno
from dataclasses import replace

import pytest
import trio
import trio.testing

from kwire.cluster.partition import ALL
from kwire.cluster.waiting import ReplicationWait
from kwire.metadata.changes import PartitionChanged, PartitionsAdded, TopicCreated, TopicDeleted
from kwire.metadata.image import PartitionImage, TopicImage
from kwire.ports.clock import TrioClock
from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.builder import build_batch
from tests.records import simple_records

from .images import topic_id
from .nodes import Cluster, Node, Wakeup


@pytest.fixture
async def cluster(nursery):
    return Cluster(nursery)


def refusal(node, topic: str = "t", index: int = 0) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        node.replicas.partition(topic, index)
    return raised.value.code


async def append_to(node, partition) -> None:
    await partition.append(build_batch(simple_records([(None, b"x")], node.clock.wall_ms())), 1)


def folders(node, path: str = "/a") -> list[str]:
    return [name for name in node.files.list(path) if "-" in name and "checkpoint" not in name]


async def test_finding_partitions(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create(replicas=(1,))
    assert cluster[1].replicas.partition("t", 0).topic_id == topic_id("t")
    assert refusal(cluster[1], "t", 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(cluster[1], "nope") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(cluster[2], "t") is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_what_was_created_can_be_used_at_once(cluster, autojump_clock):
    await cluster.start(1)
    await cluster.create(replicas=(1,), partitions=20)
    assert len(cluster[1].logs.logs) == 20
    await cluster.commit(PartitionsAdded("t", (PartitionImage((1,), (1,), 1),)))
    assert cluster[1].partition(index=20).is_leader
    assert cluster[1].partition(index=20).log.topic_id == topic_id("t")


async def test_deleted_topics_leave_nothing(cluster, autojump_clock):
    await cluster.start(1, 2, log_segment_delete_delay_ms="1000")
    await cluster.create()
    await trio.sleep(2)
    partition = cluster[1].partition()
    waiter = Wakeup()
    partition.watch(waiter)
    cluster.network.cut("broker-1", "broker-2")
    wait = ReplicationWait([(partition, await cluster[1].append(b"a", acks=ALL))])
    await cluster.commit(TopicDeleted("t"))
    assert await wait.finish(10) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert waiter.count
    assert refusal(cluster[1]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not cluster[1].logs.logs
    assert not cluster[2].logs.logs


async def test_a_topic_created_again_begins_anew(cluster, autojump_clock):
    await cluster.start(1)
    await cluster.create(replicas=(1,))
    await cluster[1].append(b"old")
    first = cluster[1].partition()
    anew = TopicCreated(TopicImage("t", b"n" * 16, (PartitionImage((1,), (1,), 1),)))
    await cluster.commit(TopicDeleted("t"), anew)  # one step, as a broker sees it that was cut off meanwhile
    assert cluster[1].partition() is not first
    assert cluster[1].values() == []
    assert cluster[1].partition().log.topic_id == b"n" * 16
    assert first.acknowledged(await cluster[1].append(b"new")) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_replica_that_moves_away(cluster, autojump_clock):
    await cluster.start(1, 2, 3)
    await cluster.create()
    await cluster[1].produce(b"a")
    moved = replace(cluster.state(), replicas=(1, 3), isr=(1,), partition_epoch=1)
    await cluster.commit(PartitionChanged("t", 0, moved))
    assert refusal(cluster[2]) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not cluster[2].logs.logs
    await trio.sleep(2)
    assert cluster[3].values() == [b"a"]
    assert cluster.state().isr == (1, 3)


async def test_isrs_are_looked_at_of_partitions_with_other_replicas(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create("alone", replicas=(1,))
    await cluster.create()
    for epoch, replicas in enumerate(((1,), (1, 2), (2, 1)), 1):
        await cluster.commit(
            PartitionChanged("t", 0, replace(cluster.state(), replicas=replicas, isr=(1,), partition_epoch=epoch))
        )
        await trio.sleep(0.1)
        replicated = len(replicas) > 1
        assert list(cluster[1].replicas._replicated.values()) == [cluster[1].partition()][:replicated]
        assert len(cluster[2].replicas._replicated) == replicated
    await cluster.commit(TopicDeleted("t"))
    assert cluster[1].replicas._replicated == cluster[2].replicas._replicated == {}


async def test_only_what_changed_is_touched(cluster, autojump_clock, monkeypatch):
    await cluster.start(1)
    for number in range(50):
        await cluster.create(f"t{number}", replicas=(1,), partitions=4)
    touched = []
    partition_type = type(cluster[1].partition("t0"))
    take_role = partition_type.take_role

    async def noted(self, state):
        touched.append(self.name)
        return await take_role(self, state)

    monkeypatch.setattr(partition_type, "take_role", noted)
    state = cluster.state("t7", 2)
    await cluster.commit(PartitionChanged("t7", 2, replace(state, partition_epoch=1)))
    await cluster.configure("t8", retention_ms="5")
    assert touched == ["t7-2"]


async def test_topic_configs_reach_the_logs(cluster, autojump_clock):
    await cluster.start(1)
    await cluster.create("a", replicas=(1,), partitions=2, retention_ms="5")
    await cluster.create("b", replicas=(1,))
    config = cluster[1].partition("a", 1).log.config
    assert config.retention_ms == 5
    await cluster.configure("a", retention_ms="6")
    assert [cluster[1].partition("a", index).log.config.retention_ms for index in (0, 1)] == [6, 6]
    assert cluster[1].partition("b").log.config.retention_ms == 604_800_000
    cluster[1].replicas.reconfigure(cluster[1].config.with_dynamic({"log.retention.ms": "7"}))
    assert cluster[1].partition("a").log.config.retention_ms == 6
    assert cluster[1].partition("b").log.config.retention_ms == 7


async def test_a_flush_ms_reaches_those_that_flush(cluster, autojump_clock):
    await cluster.start(1)
    for name in ("a", "b"):
        await cluster.create(name, replicas=(1,))
    timed = cluster[1].partition("a").log.services.flushed_by_time
    assert list(timed) == []
    await cluster.configure("a", flush_ms="6")
    assert [log.key for log in timed] == [("a", 0)]
    cluster[1].replicas.reconfigure(cluster[1].config.with_dynamic({"log.flush.interval.ms": "7"}))
    assert {log.key: log.config.flush_ms for log in timed} == {("a", 0): 6, ("b", 0): 7}
    await cluster.restart(1)
    assert [log.key for log in cluster[1].partition("a").log.services.flushed_by_time] == [("a", 0)]


async def test_a_smaller_min_isr_lets_the_high_watermark_go_on(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create(isr=(1,), min_insync_replicas="2")
    cluster.network.cut("broker-1", "broker-2")
    appended = await cluster[1].append(b"a")
    wait = ReplicationWait([(cluster[1].partition(), appended)])
    await cluster.configure("t", min_insync_replicas="1")
    assert wait.outcomes == [ErrorCode.NONE]


async def test_restart_remembers(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    await cluster[1].produce(b"a")
    await trio.sleep(2)
    await cluster.restart(1)
    partition = cluster[1].partition()
    assert partition.is_leader
    assert cluster[1].values() == [b"a"]
    assert partition.log.high_watermark == 1
    assert await cluster[1].produce(b"b") is ErrorCode.NONE
    await cluster.restart(2)
    assert cluster[2].partition().log.high_watermark >= 1
    assert await cluster[1].produce(b"c") is ErrorCode.NONE
    assert cluster[2].values() == [b"a", b"b", b"c"]


async def test_a_change_during_the_start_is_not_missed(cluster, autojump_clock, nursery):
    await cluster.start(2)
    await cluster.create(replicas=(1,))
    node = cluster.nodes[1] = Node(cluster, 1, MemoryFileSystem(TrioClock()))
    get_or_create = node.logs.get_or_create
    others = ["late", "later"]

    async def slow(*arguments, **options):
        if others:
            await cluster.create(others.pop(), replicas=(1,))
        return await get_or_create(*arguments, **options)

    node.logs.get_or_create = slow
    await node.start(nursery)
    assert [node.partition(name).is_leader for name in ("t", "late", "later")] == [True, True, True]


async def test_logs_that_nobody_knows_are_set_aside(cluster, autojump_clock):
    await cluster.start(1, 2)
    for name in ("kept", "gone", "moved", "anew"):
        await cluster.create(name, replicas=(1,))
        await cluster[1].append(b"x", topic=name)
    await cluster[1].stop()
    state = cluster.state("moved")
    await cluster.commit(
        TopicDeleted("gone"),
        PartitionChanged("moved", 0, replace(state, replicas=(2,), isr=(2,), leader=2, partition_epoch=1)),
        TopicDeleted("anew"),
        TopicCreated(TopicImage("anew", b"n" * 16, (PartitionImage((1,), (1,), 1),))),
    )
    await cluster.start(1, files=cluster[1].files)
    assert cluster[1].values("kept") == [b"x"]
    assert cluster[1].values("anew") == []
    names = [
        name.split(".")[0] for path in ("/a", "/b") for name in folders(cluster[1], path) if name.endswith("-stray")
    ]
    assert sorted(names) == ["anew-0", "gone-0", "moved-0"]


async def test_the_log_has_a_line_for_a_dir_and_none_for_each_of_its_partitions(cluster, autojump_clock, caplog):
    await cluster.start(1)
    await cluster.create(replicas=(1,), partitions=40)
    await cluster.create("gone", replicas=(1,), partitions=40)
    await cluster[1].stop()
    await cluster.commit(TopicDeleted("gone"))
    files = cluster[1].files

    def fault(operation: str, path: str, size: int) -> None:
        if path.startswith("/b"):
            raise OSError(errno.EROFS, "Read-only file system", path)

    files.fault = fault
    caplog.clear()
    await cluster.start(1, files=files)
    files.fault = None
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING", "WARNING"]
    assert "/b is offline" in caplog.messages[0]
    assert "the logs of gone-" in caplog.messages[1]
    assert "and 15 more" in caplog.messages[1]
    assert "and 15 more" in caplog.messages[2]


async def test_a_failing_dir_takes_only_its_own_partitions_away(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create(replicas=(1, 2), partitions=20)
    await trio.sleep(2)
    partitions = [cluster[1].partition(index=index) for index in range(20)]
    hit = [partition for partition in partitions if partition.log.log_dir.path == "/a"]
    assert 0 < len(hit) < 20
    waiter = Wakeup()
    hit[0].watch(waiter)

    def fault(operation: str, path: str, size: int) -> None:
        if path.startswith("/a/") and operation == "write":
            raise OSError(errno.EIO, "broken", path)

    cluster[1].files.fault = fault
    for partition in partitions:
        if partition in hit:
            with pytest.raises(KafkaError) as raised:
                await append_to(cluster[1], partition)
            assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            for call in (
                partition.fetch(0, 100),
                partition.fetch_for_follower(2, 0, 100),
                partition.delete_records(0),
            ):
                with pytest.raises(KafkaError) as raised:
                    await call
                assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            with pytest.raises(KafkaError) as raised:
                partition.low_watermark()
            assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        else:
            await append_to(cluster[1], partition)
    assert waiter.count
    await cluster.elect(1)  # a new role does not bring the log back
    with pytest.raises(KafkaError) as raised:
        await append_to(cluster[1], cluster[1].partition(index=hit[0].index))
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_follower_in_a_failing_dir_stops_fetching(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    await trio.sleep(2)
    path = cluster[2].partition().log.log_dir.path

    def fault(operation: str, name: str, size: int) -> None:
        if name.startswith(path) and operation == "write":
            raise OSError(errno.ENOSPC, "full", name)

    cluster[2].files.fault = fault
    assert await cluster[1].produce(b"a", timeout_s=3) is ErrorCode.REQUEST_TIMED_OUT
    before = len(cluster[1].fetches)
    await trio.sleep(10)
    assert len(cluster[1].fetches) == before
    assert cluster[1].values() == [b"a"]
    await trio.sleep(60)
    assert cluster.state().isr == (1,)
    with pytest.raises(KafkaError) as raised:
        await append_to(cluster[2], cluster[2].partition())
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR  # whatever its role


async def test_leaders_that_come_later_are_found(cluster, autojump_clock):
    await cluster.start(2)
    await cluster.create(replicas=(1, 2))
    await trio.sleep(5)
    await cluster.start(1)
    assert await cluster[1].produce(b"a") is ErrorCode.NONE


async def test_many_partitions_are_fetched_in_one_request(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create(partitions=30)
    await trio.sleep(3)
    before = len(cluster[1].fetches)
    await trio.sleep(10)
    later = cluster[1].fetches[before:]
    assert 15 <= len(later) <= 25
    assert all(sum(len(topic.partitions) for topic in request.topics) == 30 for request in later)


async def test_fetchers_end_with_what_they_fetch(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    await trio.sleep(2)
    await cluster.commit(TopicDeleted("t"))
    await trio.sleep(2)
    before = len(cluster[1].fetches)
    await trio.sleep(10)
    assert len(cluster[1].fetches) == before
    await cluster.create("u")
    assert await cluster[1].produce(b"a", topic="u") is ErrorCode.NONE
