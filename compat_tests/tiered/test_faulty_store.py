"""The S3 store is behind a network that spoils one exchange in seven: clients see a slow topic, and all of it."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import trio

from compat_tests.tiered.tier import consume, copies, create, produce, settings, until, until_tiered
from jvm.s3proxy import S3Proxy
from kwire.ports.real_files import PosixFileSystem
from kwire.storage.inspection.remote_sizes import remote_sizes
from kwire.testing.process import BrokerProcess
from tests.remote.faulty_proxy import FaultyProxy, Kind, Request, faulty_proxy
from tests.remote.s3 import s3_settings

RECORDS = 3000
SPOILT = 1 / 7
PATIENCE = {"storage.s3.api.call.attempt.timeout": "500", "storage.s3.api.call.timeout": "2000"}


async def test_copies_and_reads(s3_server: S3Proxy, s3_bucket: str, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw = random.Random(seed)

    def plan(request: Request) -> Kind | None:
        return draw.choice(list(Kind)) if draw.random() < SPOILT else None

    async with faulty_proxy(s3_server.host, s3_server.port) as proxy:
        storage = s3_settings(s3_server, s3_bucket) | {"storage.s3.endpoint.url": proxy.endpoint} | PATIENCE
        broker = BrokerProcess(settings(storage), data_dir=tmp_path / "data")
        await trio.to_thread.run_sync(broker.start)  # it tries its store
        try:
            proxy.plan = plan
            await trio.to_thread.run_sync(partial(write_and_read, broker))
            assert proxy.spoilt
            await trio.to_thread.run_sync(partial(settle, broker, proxy, s3_server, s3_bucket))
        finally:
            await trio.to_thread.run_sync(broker.close)


def write_and_read(broker: BrokerProcess) -> None:
    values = [b"%06d" % number + bytes(1000) for number in range(RECORDS)]
    create(broker, "t", internal_segment_bytes="200000", local_retention_bytes="200000")
    produce(broker, "t", values, **{"batch.size": 16_000})
    until_tiered(broker, "t")
    assert consume(broker, "t") == list(enumerate(values))


def settle(broker: BrokerProcess, proxy: FaultyProxy, server: S3Proxy, bucket: str) -> None:
    """Without faults the store comes to have what is told of, and nothing else."""
    proxy.plan = None

    def settled() -> bool:
        told = sum(size.segments for size in remote_sizes(PosixFileSystem(), [str(broker.data_dir)]))
        return 0 < told == len(copies(server.objects / bucket))

    until(settled, "the store and the account of it differ")
