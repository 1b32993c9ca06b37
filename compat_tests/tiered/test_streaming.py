"""A fetch of much tiered data goes through the broker, it does not gather there."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
import trio

from compat_tests.tiered.tier import create, produce, settings, until
from jvm.s3proxy import S3Proxy
from kwire.client.connection import Connection
from kwire.ports.tcp import TcpTransport
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.testing.process import BrokerProcess
from tests.remote.s3 import s3_settings

MB = 1 << 20
FETCHED = 100 * MB
BATCH = MB
RECORDS = 110
MEMORY = 40 * MB
"""What the broker may take more meanwhile: chunks, their copies on the way, what the allocator keeps."""

STORAGE = {
    "chunk.size": str(MB),
    "fetch.chunk.cache.size": str(4 * MB),
    "fetch.chunk.cache.prefetch.max.size": str(4 * MB),
}


def value(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest() * (BATCH // 32 - 16)


@pytest.fixture
def storage(s3_server: S3Proxy, s3_bucket: str) -> dict[str, str]:
    return s3_settings(s3_server, s3_bucket) | STORAGE


def test_100_mb_in_one_fetch(storage: dict[str, str]) -> None:
    with BrokerProcess(
        settings(storage) | {"fetch.max.bytes": 2 * FETCHED, "remote.fetch.max.wait.ms": 30_000}
    ) as broker:
        create(broker, "t", segment_bytes=str(RECORDS * BATCH), max_message_bytes=str(2 * MB))
        values = [value(number) for number in range(RECORDS + 3)]
        produce(broker, "t", values, **{"message.max.bytes": 2 * MB, "batch.num.messages": 1})
        folder = broker.data_dir / "t-0"
        until(lambda: not (folder / f"{0:020d}.log").exists(), "the first segment stays here")
        before = resident(broker.pid)
        Path(f"/proc/{broker.pid}/clear_refs").write_text("5")  # the peak counts from here
        records = trio.run(fetch, broker)
        grown = peak(broker.pid) - before
        assert len(records) == FETCHED
        assert records.find(value(0)) >= 0
        at = 0
        for number in range(FETCHED // BATCH - 1):
            at = records.find(values[number], at)
            assert at >= 0
        assert grown < MEMORY, f"{grown / MB:.0f} MB"


async def fetch(broker: BrokerProcess) -> bytes:
    connection = await Connection.open(TcpTransport(), "127.0.0.1", int(broker.bootstrap.rpartition(":")[2]))
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=FETCHED)
    request = FetchRequest(max_wait_ms=500, max_bytes=FETCHED, topics=[FetchTopic(topic="t", partitions=[asked])])
    response = await connection.call(request, 12)
    connection.close()
    data = response.responses[0].partitions[0]
    assert data.error_code == 0
    return bytes(data.records)


def resident(pid: int) -> int:
    return _status(pid, "VmRSS")


def peak(pid: int) -> int:
    return _status(pid, "VmHWM")


def _status(pid: int, name: str) -> int:
    """Bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024
