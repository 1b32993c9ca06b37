"""Random calls of every store while it fails at random: what is read is what was put, or nobody has read anything."""

from __future__ import annotations

from collections.abc import Iterator

import trio
import trio.testing
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jvm.s3proxy import S3Proxy
from kwire.ports.clock import TrioClock
from kwire.ports.memory_files import MemoryFileSystem
from kwire.ports.memory_transport import MemoryNetwork
from kwire.ports.randomness import SeededRandomness
from kwire.ports.simulated_disk import Order, SimulatedDisk, chance
from kwire.remote.directory import DirectoryObjectStore
from kwire.remote.faults import Kind as MemoryKind
from kwire.remote.faults import RandomFaults
from kwire.remote.memory import MemoryObjectStore
from kwire.remote.s3 import S3ObjectStore
from tests.broker.scene import memory_ports
from tests.remote.faulty_proxy import Kind, Request, faulty_proxy
from tests.remote.model import MIB, Call, Model, calls
from tests.remote.s3 import s3_config

QUICK = [kind for kind in Kind if kind not in (Kind.HANG, Kind.HANG_AFTER, Kind.TRICKLE, Kind.KEY_REFUSED)]
"""Those that hang take time and no care: other tests have them. A refusal does not pass."""
PASSING = [kind for kind in MemoryKind if kind is not MemoryKind.DENIED]

many_calls = st.lists(calls, min_size=1, max_size=20)


@given(many_calls, st.integers(0, 1 << 32))
def test_memory(steps: list[Call], seed: int) -> None:
    async def run() -> None:
        store, model = MemoryObjectStore(TrioClock()), Model()
        store.faults = RandomFaults(SeededRandomness(seed), dict.fromkeys(PASSING, 10))
        for call in steps:
            await model.call(call, store)
        store.faults = None
        await model.read_everything(store)

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


@settings(deadline=None)
@given(many_calls, st.integers(0, 1 << 32), st.sampled_from(Order))
def test_a_directory(steps: list[Call], seed: int, order: Order) -> None:
    async def run() -> None:
        disk, model = SimulatedDisk(order=order, seed=seed), Model()
        ports = memory_ports(MemoryNetwork(), MemoryFileSystem())._replace(files=disk)
        store = DirectoryObjectStore("/objects", ports)
        disk.fault = chance(seed, 0.2, operations=("create", "open", "write", "sync", "sync_dir", "rename", "list"))
        for call in steps:
            await model.call(call, store)
        disk.fault = None
        await model.read_everything(store)

    trio.run(run)


async def run_s3(server: S3Proxy, steps: list[Call], faults: Iterator[Kind | None], bucket: str) -> None:
    def plan(request: Request) -> Kind | None:
        kind = next(faults, None)
        # S3 does that where it completes an upload, and nowhere else that is used here.
        return None if kind is Kind.ERROR_IN_200 and request.step != "complete" else kind

    async with faulty_proxy(server.host, server.port) as proxy:
        times = {"s3_api_call_timeout": 10_000, "s3_api_call_attempt_timeout": 9_800}
        more = {"s3_multipart_upload_part_size": 5 * MIB, "s3_endpoint_url": proxy.endpoint} | times
        store, model = S3ObjectStore(s3_config(server, bucket, **more)), Model()
        proxy.plan = plan
        for call in steps:
            await model.call(call, store)
        proxy.plan = None
        await model.read_everything(store)
        await store.close()


@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to make a failure smaller takes minutes here
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(calls, min_size=1, max_size=12), st.lists(st.none() | st.sampled_from(QUICK), max_size=25))
def test_s3(s3_server: S3Proxy, steps: list[Call], faults: list[Kind | None]) -> None:
    bucket = f"model-{len(list(s3_server.objects.iterdir()))}"
    s3_server.make_bucket(bucket)
    trio.run(run_s3, s3_server, steps, iter(faults), bucket)
