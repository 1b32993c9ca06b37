"""`kwire consume --group`, with a broker in memory: where it begins, goes on and stops."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping

import pytest
import trio

from kwire.cli import consume_in_group as consume_in_group_module
from kwire.cli.consume_in_group import consume_in_group
from kwire.cli.positions import BEGINNING, END
from kwire.cli.running import CommandError
from kwire.client.client import Client
from kwire.client.consumer import ConsumedRecord, Consumer
from kwire.client.group_member import GroupMember
from kwire.client.group_offsets import committed_offsets
from kwire.client.groups import Groups
from kwire.client.offsets import Isolation
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest
from kwire.protocol.types import TopicPartition
from tests.broker.apis import groups, transactions
from tests.broker.scene import HOST, PORT, Scene, running

DELAYED = {"group.initial.rebalance.delay.ms": "3000"}
"""A member waits so long for the others before it has its partitions."""


async def consume(
    scene: Scene,
    printed: list[bytes | None],
    *,
    first: str = BEGINNING,
    count: int | None = None,
    to_the_end: bool = True,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> None:
    """Until the end of the topic, unless told; what it prints goes into `printed`."""
    client = Client(scene.network.transport("cli"), [(HOST, PORT)])

    def render(record: ConsumedRecord) -> bytes:
        printed.append(record.value)
        return b""

    await consume_in_group(client, "g", "t", first, to_the_end, count, render, isolation)


async def committed(scene: Scene) -> dict[TopicPartition, int]:
    client = Client(scene.network.transport("another"), [(HOST, PORT)])
    found = await committed_offsets(Groups(client), "g")
    client.close()
    return {partition: offset.offset for partition, offset in found.items()}


async def test_it_goes_on_where_the_group_is(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", b"a", b"b", b"c")
        printed: list[bytes | None] = []
        await consume(scene, printed, count=1)
        assert printed == [b"a"]
        await consume(scene, printed)
        assert printed == [b"a", b"b", b"c"]
        await consume(scene, printed)
        assert printed == [b"a", b"b", b"c"]


async def test_it_begins_at_the_end_where_the_group_has_read_nothing(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", b"a")
        printed: list[bytes | None] = []
        await consume(scene, printed, first=END)
        assert printed == []


async def test_the_end_is_that_of_the_start(autojump_clock) -> None:
    async with running(DELAYED) as scene:
        await scene.create("t")
        await scene.produce("t", b"a", b"b")
        printed: list[bytes | None] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consume, scene, printed)
            await trio.sleep(1)
            await scene.produce("t", b"late")
        assert printed == [b"a", b"b"]


async def test_a_partition_that_comes_after_the_start_is_not_waited_for(autojump_clock) -> None:
    async with running(DELAYED) as scene:
        await scene.create("t")
        await scene.produce("t", b"a")
        printed: list[bytes | None] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consume, scene, printed)
            await trio.sleep(1)
            more = CreatePartitionsTopic(name="t", count=2, assignments=None)
            await scene.call(CreatePartitionsRequest(topics=[more], timeout_ms=1000))
            await scene.produce("t", b"late", partition=1)
        assert printed == [b"a"]


async def test_where_it_began_counts_though_nothing_was_read(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", b"a")
        printed: list[bytes | None] = []
        await consume(scene, printed, first=END)
        await scene.produce("t", b"b")
        await consume(scene, printed, first=END)
        assert printed == [b"b"]


@pytest.mark.parametrize("isolation", Isolation)
async def test_the_end_is_before_what_is_not_decided_for_who_reads_committed(
    isolation: Isolation, autojump_clock
) -> None:
    async with running() as scene:
        await scene.create("t")
        producer = await transactions.begin(scene)
        await transactions.add(scene, producer, transactions.partitions(0, topic="t"))
        await transactions.write(scene, producer, b"a", topic="t")
        printed: list[bytes | None] = []
        await consume(scene, printed, first=END, isolation=isolation)
        assert (await transactions.end(scene, producer))[0] == 0
        await transactions.until(scene, "CompleteCommit")
        await consume(scene, printed, isolation=isolation)
        assert printed == ([b"a"] if isolation is Isolation.READ_COMMITTED else [])
        assert await committed(scene) == {("t", 0): 2}  # the marker too


async def test_who_is_slow_to_take_the_output_stays_a_member(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async def patiently(data: bytes) -> None:
        await trio.sleep(100)

    monkeypatch.setattr(consume_in_group_module, "write_patiently", patiently)
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", b"a", b"b")
        printed: list[bytes | None] = []
        await consume(scene, printed)
        assert printed == [b"a", b"b"]
        assert await committed(scene) == {("t", 0): 2}


async def test_a_rebalance_waits_for_no_slow_output(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async def patiently(data: bytes) -> None:
        await trio.sleep(5)

    monkeypatch.setattr(consume_in_group_module, "write_patiently", patiently)
    monkeypatch.setattr(consume_in_group_module, "PIECE_BYTES", 0)  # so that each record is one
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", 2)
        values = [b"%d" % number for number in range(40)]
        for partition in (0, 1):
            await scene.produce("t", *values[partition::2], partition=partition)
        printed: list[bytes | None] = []
        nursery.start_soon(consume, scene, printed)
        await trio.sleep(12)
        await consume(scene, printed)
    assert sorted(printed, key=str) == sorted(values, key=str)


async def test_it_goes_on_where_what_it_would_read_is_gone(
    autojump_clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    poll, gone = Consumer.poll, [KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "t-0 at offset 0")]

    async def failing(consumer: Consumer) -> list[ConsumedRecord]:
        if not gone:
            return await poll(consumer)
        asked = DeleteRecordsPartition(partition_index=0, offset=2)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[asked])], timeout_ms=1000)
        await scene.call(request)
        raise gone.pop()

    monkeypatch.setattr(Consumer, "poll", failing)
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", b"a", b"b", b"c", b"d")
        printed: list[bytes | None] = []
        await consume(scene, printed)
        assert printed == [b"c", b"d"]
    assert capsys.readouterr().err == "kwire: OFFSET_OUT_OF_RANGE: t-0 at offset 0: goes on at the beginning\n"


@pytest.fixture
def as_signals_are_by_default() -> Iterator[None]:
    """Whoever runs the tests may have had them ignored, as nohup does."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("as_signals_are_by_default")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_it_leaves_its_group_when_it_is_ended(number: signal.Signals, autojump_clock) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t")
        await scene.produce("t", b"a")
        printed: list[bytes | None] = []
        ended: list[int] = []

        async def until_ended() -> None:
            try:
                await consume(scene, printed, to_the_end=False)
            except CommandError as error:
                ended.append(error.code)

        nursery.start_soon(until_ended)
        await trio.sleep(1)
        assert printed == [b"a"]
        signal.raise_signal(number)
        await trio.sleep(1)
        assert ended == [128 + number]
        response = await scene.call(DescribeGroupsRequest(groups=["g"]), 5)
        assert (response.groups[0].group_state, response.groups[0].members) == ("Empty", [])


@pytest.mark.usefixtures("as_signals_are_by_default")
async def test_what_was_printed_when_it_is_ended_is_committed(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async def patiently(data: bytes) -> None:
        await trio.sleep(1)

    monkeypatch.setattr(consume_in_group_module, "write_patiently", patiently)
    monkeypatch.setattr(consume_in_group_module, "PIECE_BYTES", 0)
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t")
        await scene.produce("t", b"a", b"b", b"c", b"d")
        printed: list[bytes | None] = []

        async def until_ended() -> None:
            with pytest.raises(CommandError):
                await consume(scene, printed)

        nursery.start_soon(until_ended)
        await trio.sleep(2.5)
        assert printed == [b"a", b"b", b"c"]  # of which the last one is not out yet
        signal.raise_signal(signal.SIGTERM)
        await trio.sleep(1)
        assert await committed(scene) == {("t", 0): 2}


async def test_why_it_ends_is_told_though_nothing_can_be_committed(
    autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def closed(data: bytes) -> None:
        raise BrokenPipeError

    async def refused(member: GroupMember, offsets: Mapping[TopicPartition, int]) -> None:
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    monkeypatch.setattr(consume_in_group_module, "write_patiently", closed)
    async with running() as scene:
        await scene.create("t")
        await consume(scene, [])  # so that the group has a place
        await scene.produce("t", b"a")
        monkeypatch.setattr(GroupMember, "commit", refused)
        with pytest.raises(BaseExceptionGroup) as ended:
            await consume(scene, [])
        assert ended.group_contains(BrokenPipeError)
        assert not ended.group_contains(KafkaError)


@pytest.mark.usefixtures("as_signals_are_by_default")
async def test_it_leaves_though_it_waits_for_others(autojump_clock) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t")
        await groups.join(scene, group_id="group", rebalance_timeout_ms=300_000, session_timeout_ms=600_000)
        client = Client(scene.network.transport("cli"), [(HOST, PORT)])
        ended: list[float] = []

        async def until_ended() -> None:
            with pytest.raises(CommandError):
                await consume_in_group(
                    client, groups.GROUP, "t", BEGINNING, True, None, bytes, Isolation.READ_COMMITTED
                )
            ended.append(trio.current_time())

        nursery.start_soon(until_ended)
        await trio.sleep(20)
        signal.raise_signal(signal.SIGTERM)
        began = trio.current_time()
        await trio.sleep(10)
        assert ended[0] - began < 1
        response = await scene.call(DescribeGroupsRequest(groups=[groups.GROUP]), 5)
        assert len(response.groups[0].members) == 1


async def test_signals_that_are_ignored_end_nothing(autojump_clock) -> None:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        async with running() as scene:
            await scene.create("t")
            await scene.produce("t", b"a")
            printed: list[bytes | None] = []
            await consume(scene, printed)
            assert printed == [b"a"]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
