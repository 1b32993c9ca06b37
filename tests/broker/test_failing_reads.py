"""A read fails while an answer is put together: what of it is told, and which log dir is blamed."""

from __future__ import annotations

import errno

import trio

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.broker.apis.test_alter_replica_log_dirs import until_in
from tests.broker.scene import running
from tests.broker.test_failing_log_dirs import DIRS, two_topics
from tests.storage.house import broken


async def test_a_read_that_fails(autojump_clock, caplog) -> None:
    """What else the fetch asked for is answered."""
    async with running(DIRS) as scene:
        await two_topics(scene)
        scene.files.fault = broken("/two/two-0")
        partition = FetchPartition(partition=0, partition_max_bytes=1000)
        topics = [FetchTopic(topic=topic, partitions=[partition]) for topic in ("one", "two")]
        response = await scene.call(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 12)
        one, two = (topic.partitions[0] for topic in response.responses)
        assert (one.error_code, one.high_watermark, bool(one.records)) == (0, 1, True)
        assert (two.error_code, two.high_watermark, two.records) == (ErrorCode.KAFKA_STORAGE_ERROR, -1, b"")
        (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert line.startswith("log dir /two is offline until the broker restarts")
        assert "read of two-0 failed" in line


async def test_a_read_that_fails_after_the_log_was_moved(autojump_clock, caplog, monkeypatch) -> None:
    """The dir that it was read from is offline, and not the one where the log is now."""
    async with running(DIRS) as scene:
        await two_topics(scene)
        begun, moved = trio.Event(), trio.Event()

        async def fail_late(*_: object, **__: object) -> None:
            begun.set()
            await moved.wait()
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr("kwire.broker.apis.fetch.sendable", fail_late)
        reader, codes = await scene.another_connection(), []

        async def fetch() -> None:
            partition = FetchPartition(partition=0, partition_max_bytes=1000)
            topics = [FetchTopic(topic="one", partitions=[partition])]
            response = await reader.call(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 12)
            codes.append(response.responses[0].partitions[0].error_code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetch)
            await begun.wait()
            move = AlterReplicaLogDirTopic(name="one", partitions=[0])
            await scene.call(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/two", topics=[move])]))
            await until_in(scene, "one", "/two")
            moved.set()
        assert codes == [ErrorCode.KAFKA_STORAGE_ERROR]
        (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert line.startswith("log dir /one is offline")
        assert (await scene.produce("one", b"after")).error_code == 0
        reader.close()
