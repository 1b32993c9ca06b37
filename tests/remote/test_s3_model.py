"""Random calls of the store in S3 while exchanges are spoilt at random, beside a model of what may be there."""

from __future__ import annotations

from typing import NamedTuple

import trio
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jvm.s3proxy import S3Proxy
from kwire.remote.errors import ObjectNotFound, RemoteStorageError
from kwire.remote.object_store import ObjectStore
from kwire.remote.s3 import S3ObjectStore
from tests.remote.faulty_proxy import Kind, Request, faulty_proxy
from tests.remote.s3 import s3_config

MIB = 1 << 20
NAMES = ("a", "b/c")
CONTENTS = (b"", b"0123456789" * 50, bytes(range(256)) * 20, bytes(range(251)) * (6 * MIB // 251))
"""The last one is uploaded in two parts."""
QUICK = [kind for kind in Kind if kind not in (Kind.HANG, Kind.HANG_AFTER, Kind.TRICKLE)]
"""Those that hang take time and no care: other tests have them."""


class Call(NamedTuple):
    what: str
    name: str
    content: int
    start: int
    size: int
    faults: list[Kind | None]
    """Of the next exchanges."""


calls = st.builds(
    Call,
    st.sampled_from(["put", "put", "get", "get", "size", "delete", "list"]),
    st.sampled_from(NAMES),
    st.integers(0, len(CONTENTS) - 1),
    st.integers(0, 600),
    st.integers(0, 7 * MIB),
    st.lists(st.none() | st.sampled_from(QUICK), max_size=5),
)


class Model:
    """What each name may hold: the contents (None: nothing) that calls so far have left possible."""

    def __init__(self) -> None:
        self.possible: dict[str, set[int | None]] = {name: {None} for name in NAMES}

    def saw(self, name: str, fits: set[int | None]) -> None:
        left = self.possible[name] & fits
        assert left, f"{name} holds what nobody can have put there"
        self.possible[name] = left


def holding(check: object) -> set[int | None]:
    return {at for at, content in enumerate(CONTENTS) if check(content)}  # type: ignore[operator]


async def do(call: Call, store: ObjectStore, model: Model) -> None:
    name, end = call.name, call.start + call.size
    match call.what:
        case "put":
            wanted: set[int | None] = {call.content}
            try:
                await store.put(name, [CONTENTS[call.content][:100], CONTENTS[call.content][100:]])
                model.possible[name] = wanted
            except RemoteStorageError:
                model.possible[name] |= wanted
        case "delete":
            try:
                await store.delete([name, "none"])
                model.possible[name] = {None}
            except RemoteStorageError:
                model.possible[name] |= {None}
        case "get":
            try:
                data = await store.get(name, call.start, end)
                model.saw(name, holding(lambda content: content[call.start : end] == data))
            except ObjectNotFound:
                model.saw(name, {None})
        case "size":
            try:
                size = await store.size(name)
                model.saw(name, holding(lambda content: len(content) == size))
            except ObjectNotFound:
                model.saw(name, {None})
        case "list":
            found = {one.key: one.size async for one in store.list("")}
            assert set(found) <= set(NAMES)
            for other in NAMES:
                size = found.get(other)
                model.saw(other, {None} if size is None else holding(lambda content, size=size: len(content) == size))


async def run(server: S3Proxy, steps: list[Call], bucket: str) -> None:
    async with faulty_proxy(server.host, server.port) as proxy:
        times = {"s3_api_call_timeout": 10_000, "s3_api_call_attempt_timeout": 9_800}
        more = {"s3_multipart_upload_part_size": 5 * MIB, "s3_endpoint_url": proxy.endpoint} | times
        store = S3ObjectStore(s3_config(server, bucket, **more))
        model = Model()
        for call in steps:
            faults = list(call.faults)

            def plan(request: Request, faults: list[Kind | None] = faults) -> Kind | None:
                kind = faults.pop(0) if faults else None
                # S3 does that where it completes an upload, and nowhere else that is used here.
                return None if kind is Kind.ERROR_IN_200 and request.step != "complete" else kind

            proxy.plan = plan
            try:
                await do(call, store, model)
            except RemoteStorageError as error:
                if not error.retriable:
                    raise
        proxy.plan = None
        for name in NAMES:
            await do(Call("get", name, 0, 0, 7 * MIB, []), store, model)
        await store.close()


@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(calls, min_size=1, max_size=12))
def test_what_is_read_is_what_was_put(s3_server: S3Proxy, steps: list[Call]) -> None:
    bucket = f"model-{len(list(s3_server.objects.iterdir()))}"
    s3_server.make_bucket(bucket)
    trio.run(run, s3_server, steps, bucket)
