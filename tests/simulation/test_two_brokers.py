"""Two brokers in memory on a mock clock, one fetching from the other with its replica id."""

import pytest
import trio

from kwire.protocol.errors import ErrorCode

from .world import world

SETTLED = 2.0
"""Seconds: more than a follower's back-off and the longest wait of its fetch."""

LATEST = -1


async def test_the_high_watermark_follows_the_follower(autojump_clock):
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        await trio.sleep(SETTLED)
        w.cut(1, 2)
        assert await w.produce(1, b"a", b"b", acks=1) is ErrorCode.NONE
        await trio.sleep(SETTLED)
        assert (w.log(1).high_watermark, w.log(1).log_end_offset, w.log(2).log_end_offset) == (0, 2, 0)
        assert await w.consume(1) == []
        assert (await w.list_offset(1, LATEST)).offset == 0
        w.heal(1, 2)
        await trio.sleep(SETTLED)
        assert await w.consume(1) == [b"a", b"b"]
        assert (await w.list_offset(1, LATEST)).offset == 2
        assert w.records(2) == w.records(1) == [(0, b"a"), (0, b"b")]
        assert w.log(2).high_watermark == 2


async def test_acks_all_waits_for_the_follower(autojump_clock):
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        assert await w.produce(1, b"a") is ErrorCode.NONE
        assert w.records(2) == [(0, b"a")]
        w.cut(1, 2)
        began = trio.current_time()
        assert await w.produce(1, b"b", timeout_ms=3000) is ErrorCode.REQUEST_TIMED_OUT
        assert trio.current_time() - began == pytest.approx(3)
        assert await w.produce(1, b"c", acks=1) is ErrorCode.NONE
        assert await w.consume(1) == [b"a"]


async def test_an_acknowledgement_takes_events_and_no_time(autojump_clock):
    """The follower's waiting fetch is woken by the append, its next fetch wakes the produce."""
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        await w.produce(1, b"a")
        began = trio.current_time()
        for number in range(20):
            assert await w.produce(1, b"%d" % number) is ErrorCode.NONE
        assert trio.current_time() == began


async def test_a_waiting_consumer_is_woken_by_the_high_watermark(autojump_clock):
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        await w.produce(1, b"a")
        consumer = await w.connect(1)
        answers = []

        async def consume() -> None:
            data = await w.fetch(1, 1, max_wait_ms=20_000, connection=consumer)
            answers.append((trio.current_time(), bytes(data.records)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(consume)
            await trio.sleep(1)
            w.cut(1, 2)
            assert await w.produce(1, b"b", acks=1) is ErrorCode.NONE
            await trio.sleep(5)
            assert not answers  # it is in the log, but not committed
            healed = trio.current_time()
            w.heal(1, 2)
        ((woken, records),) = answers
        assert b"b" in records
        assert woken == healed
        consumer.close()


async def test_min_insync_replicas(autojump_clock):
    async with world(1, 2, replica_lag_time_max_ms="5000") as w:
        await w.create("t", [1, 2], min_insync_replicas="2")
        assert await w.produce(1, b"a") is ErrorCode.NONE
        w.cut(1, 2)
        assert await w.produce(1, b"in doubt", timeout_ms=1000) is ErrorCode.REQUEST_TIMED_OUT
        await trio.sleep(10)
        assert w.state().isr == (1,)
        assert await w.produce(1, b"refused") is ErrorCode.NOT_ENOUGH_REPLICAS
        assert await w.produce(1, b"alone", acks=1) is ErrorCode.NONE
        assert await w.consume(1) == [b"a"]
        w.heal(1, 2)
        await trio.sleep(60)
        assert w.state().isr == (1, 2)
        assert await w.produce(1, b"b") is ErrorCode.NONE
        assert await w.consume(1) == [b"a", b"in doubt", b"alone", b"b"]


async def test_after_an_epoch_bump_the_follower_truncates_where_the_diverging_epoch_says(autojump_clock):
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        assert await w.produce(1, b"both") is ErrorCode.NONE
        await trio.sleep(SETTLED)
        w.cut(1, 2)
        assert await w.produce(1, b"only on 1", acks=1) is ErrorCode.NONE
        assert await w.produce(1, b"only on 1, too", acks=1) is ErrorCode.NONE
        await w.elect(2, isr=[2])
        assert await w.produce(2, b"only on 2") is ErrorCode.NONE
        assert await w.produce(1, b"no") is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert w.records(1) == [(0, b"both"), (0, b"only on 1"), (0, b"only on 1, too")]
        told = await w.fetch(2, 3, replica_id=1, last_fetched_epoch=0, current_leader_epoch=1)
        assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (0, 1)
        assert not told.records
        w.heal(1, 2)
        await trio.sleep(60)
        assert w.records(1) == w.records(2) == [(0, b"both"), (1, b"only on 2")]
        assert w.log(1).epochs.entries() == w.log(2).epochs.entries() == [(0, 0), (1, 1)]
        assert w.state().isr == (1, 2)
        assert await w.produce(2, b"again") is ErrorCode.NONE
        await trio.sleep(SETTLED)
        assert w.log(1).high_watermark == w.log(2).high_watermark == 3


async def test_truncation_goes_back_over_every_epoch_the_leader_does_not_know(autojump_clock):
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        await w.produce(1, b"both")
        await trio.sleep(SETTLED)
        w.cut(1, 2)
        for value in (b"x", b"y", b"z"):  # epochs 1, 2, 3
            await w.elect(1)
            await w.produce(1, value, acks=1)
        for value in (b"p", b"q"):  # epochs 4, 5
            await w.elect(2, isr=[2])
            await w.produce(2, value, acks=1)
        w.heal(1, 2)
        await trio.sleep(60)
        assert w.records(1) == w.records(2) == [(0, b"both"), (4, b"p"), (5, b"q")]


async def test_stale_and_unknown_epochs_are_fenced(autojump_clock):
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        await w.elect(1)
        await w.produce(1, b"a")
        for epoch, code in (
            (0, ErrorCode.FENCED_LEADER_EPOCH),
            (1, ErrorCode.NONE),
            (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            assert (await w.fetch(1, current_leader_epoch=epoch)).error_code == code
            assert (await w.fetch(1, 1, replica_id=2, current_leader_epoch=epoch)).error_code == code
            assert (await w.list_offset(1, LATEST, current_leader_epoch=epoch)).error_code == code
            assert (await w.end_of_epoch(1, 1, current_leader_epoch=epoch)).error_code == code
        assert (await w.end_of_epoch(1, 0)).end_offset == 0
        assert (await w.end_of_epoch(1, 1)).end_offset == 1


async def test_a_follower_that_knows_the_new_epoch_first_waits_for_its_leader(autojump_clock):
    """Its fetches get UNKNOWN_LEADER_EPOCH until the leader's metadata have come; then everything goes on."""
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        await w.produce(1, b"a")
        late = w.brokers[1].store
        late.pause()
        await w.elect(1)
        await trio.sleep(10)
        assert await w.produce(1, b"b", timeout_ms=1000) is ErrorCode.REQUEST_TIMED_OUT
        await late.resume()
        await trio.sleep(SETTLED)
        assert await w.produce(1, b"c") is ErrorCode.NONE
        assert w.records(2) == [(0, b"a"), (0, b"b"), (1, b"c")]


async def test_a_follower_that_knows_the_new_epoch_last_is_fenced_until_then(autojump_clock):
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        await w.produce(1, b"a")
        late = w.brokers[2].store
        late.pause()
        await w.elect(1)
        await trio.sleep(10)
        assert await w.produce(1, b"b", timeout_ms=1000) is ErrorCode.REQUEST_TIMED_OUT
        await late.resume()
        assert await w.produce(1, b"c") is ErrorCode.NONE


async def test_leadership_goes_to_and_fro_without_losing_what_was_acknowledged(autojump_clock):
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        acknowledged = []
        for round_ in range(10):
            leader = 1 + round_ % 2
            await w.elect(leader)
            value = b"round %d" % round_
            if await w.produce(leader, value) is ErrorCode.NONE:
                acknowledged.append(value)
        await trio.sleep(60)
        assert len(acknowledged) == 10
        assert await w.consume(2) == acknowledged
        assert w.records(1) == w.records(2)


async def test_a_lost_fetch_session_costs_no_time(autojump_clock):
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        await w.produce(1, b"a")
        sessions = w.brokers[1].fetch_sessions
        assert len(sessions) == 1
        for session in list(sessions._sessions):
            sessions.close(session)
        began = trio.current_time()
        assert await w.produce(1, b"b") is ErrorCode.NONE
        assert trio.current_time() - began < 0.6
        assert len(sessions) == 1


async def test_a_fetch_that_was_lost_on_its_way_is_not_taken_for_sent(autojump_clock):
    """The leader never learned the new position: after reconnecting the follower must say it again."""
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        await w.produce(1, b"a")
        w.network.cut(w.host(2), w.host(1), both_ways=False)
        assert await w.produce(1, b"b", acks=1) is ErrorCode.NONE
        await trio.sleep(0.1)
        assert w.log(2).log_end_offset == 2  # it came with the fetch that waited; the next one is stuck
        w.network.reset(w.host(1), w.host(2))
        w.heal(1, 2)
        assert await w.produce(1, b"c") is ErrorCode.NONE
        assert w.records(2) == [(0, b"a"), (0, b"b"), (0, b"c")]


@pytest.fixture
def seen(monkeypatch):
    """The fetch requests of followers, as the brokers decode them."""
    from kwire.broker.apis import fetch

    requests = []
    handle = fetch.handle

    async def noted(broker, context, request):
        if request.replica_state.replica_id >= 0:
            requests.append((broker.id, context.api_version, request))
        return await handle(broker, context, request)

    monkeypatch.setattr(fetch, "handle", noted)
    return requests


async def test_the_follower_speaks_the_ordinary_protocol(autojump_clock, seen):
    async with world(1, 2) as w:
        await w.create("t", [1, 2])
        await w.produce(1, b"a")
        await trio.sleep(5)
        assert seen
        assert {(broker, version) for broker, version, _ in seen} == {(1, 18)}
        requests = [request for *_, request in seen]
        assert {(r.replica_state.replica_id, r.replica_state.replica_epoch) for r in requests} == {(2, 1)}
        first, *later = requests
        assert (first.session_id, first.session_epoch) == (0, 0)
        assert all(request.session_id == later[0].session_id > 0 for request in later)
        assert [request.session_epoch for request in later] == list(range(1, len(later) + 1))
        assert sum(len(request.topics) for request in later) == 1  # the position changed once
