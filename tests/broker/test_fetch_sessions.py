"""Fetch sessions keep Kafka's rules on ids and epochs (KIP-227)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kwire.broker.fetch_sessions import EVICTION_AFTER_MS, CachedPartition, FetchSessions
from kwire.protocol.errors import ErrorCode, KafkaError


def sessions(slots: int = 2) -> FetchSessions:
    numbers = iter(range(10, 10_000))
    return FetchSessions(slots, lambda bound: next(numbers) % bound)


def asked(offset: int) -> SimpleNamespace:
    return SimpleNamespace(
        partition_max_bytes=100,
        fetch_offset=offset,
        current_leader_epoch=-1,
        last_fetched_epoch=-1,
        log_start_offset=-1,
    )


def opened(cache: FetchSessions, *, size: int = 1, now_ms: int = 0, privileged: bool = False):
    session = cache.open(privileged=privileged, by_topic_id=True, size=size, now_ms=now_ms)
    if session is not None:
        session.update(((b"t" * 16, index), asked(0)) for index in range(size))
    return session


def test_a_session_goes_on_by_epochs() -> None:
    cache = sessions()
    session = opened(cache)
    for epoch in (1, 2, 3):
        assert cache.resume(session.id, epoch, by_topic_id=True, now_ms=5) is session
    with pytest.raises(KafkaError) as error:
        cache.resume(session.id, 3, by_topic_id=True, now_ms=5)
    assert error.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_the_epoch_after_the_last_is_one() -> None:
    cache = sessions()
    session = opened(cache)
    session.epoch = 2**31 - 1
    cache.resume(session.id, 2**31 - 1, by_topic_id=True, now_ms=0)
    assert session.epoch == 1


def test_an_unknown_or_closed_session_is_not_found() -> None:
    cache = sessions()
    session = opened(cache)
    cache.close(session.id)
    with pytest.raises(KafkaError) as error:
        cache.resume(session.id, 1, by_topic_id=True, now_ms=0)
    assert error.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_and_ids_do_not_mix_in_a_session() -> None:
    cache = sessions()
    session = opened(cache)
    with pytest.raises(KafkaError) as error:
        cache.resume(session.id, 1, by_topic_id=False, now_ms=0)
    assert error.value.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_fresh_session_is_not_evicted_for_one_as_large() -> None:
    cache = sessions(slots=1)
    opened(cache)
    assert opened(cache, now_ms=10) is None
    assert len(cache) == 1


def used(cache: FetchSessions, session, *times_ms: int) -> None:
    for now_ms in times_ms:
        cache.resume(session.id, session.epoch, by_topic_id=True, now_ms=now_ms)


MINUTE = 60_000


def test_a_session_in_use_yields_to_a_larger_one_once_it_is_no_longer_new() -> None:
    cache = sessions(slots=2)
    small, large = opened(cache, size=3), opened(cache, size=30)
    used(cache, small, MINUTE, 2 * MINUTE)
    used(cache, large, MINUTE, 2 * MINUTE)
    assert opened(cache, size=10, now_ms=2 * MINUTE) is None
    used(cache, small, 3 * MINUTE)
    used(cache, large, 3 * MINUTE)
    assert opened(cache, size=3, now_ms=3 * MINUTE) is None
    assert opened(cache, size=10, now_ms=3 * MINUTE) is not None
    used(cache, large, 3 * MINUTE + 1)
    with pytest.raises(KafkaError):
        used(cache, small, 3 * MINUTE + 1)


def test_a_small_session_that_is_new_does_not_protect_a_larger_one_that_is_not() -> None:
    cache = sessions(slots=2)
    grown = opened(cache, size=5)
    used(cache, grown, MINUTE, 2 * MINUTE, 3 * MINUTE)
    new = opened(cache, size=1, now_ms=3 * MINUTE)
    assert opened(cache, size=10, now_ms=3 * MINUTE) is not None
    used(cache, new, 3 * MINUTE)


def test_a_stale_session_makes_room() -> None:
    cache = sessions(slots=1)
    old = opened(cache)
    new = opened(cache, now_ms=EVICTION_AFTER_MS + 1)
    assert new is not None
    with pytest.raises(KafkaError):
        cache.resume(old.id, 1, by_topic_id=True, now_ms=EVICTION_AFTER_MS + 1)


def test_a_follower_takes_the_room_of_a_consumer_but_not_the_other_way() -> None:
    cache = sessions(slots=1)
    opened(cache, size=50)
    assert opened(cache, privileged=True, now_ms=10) is not None
    assert opened(cache, size=100, now_ms=20) is None


def test_no_slots_means_no_sessions() -> None:
    assert opened(sessions(slots=0)) is None


def test_news_is_what_changed() -> None:
    cached = CachedPartition("t", 0)
    quiet = {"has_records": False, "high_watermark": 5, "log_start_offset": 0, "special": False}
    assert cached.has_news(**quiet)
    assert not cached.has_news(**quiet)
    assert cached.has_news(**{**quiet, "has_records": True})
    assert cached.has_news(**{**quiet, "high_watermark": 6})
    assert cached.has_news(**{**quiet, "high_watermark": 6, "special": True})
    assert cached.has_news(**{**quiet, "high_watermark": -1, "special": True})
    assert cached.has_news(**{**quiet, "high_watermark": 6})


def test_partitions_that_sent_records_are_served_last() -> None:
    cache = sessions()
    session = opened(cache, size=3)
    first = session.partitions[b"t" * 16, 0]
    session.serve_last([first])
    assert [cached.index for cached in session.take_due()] == [1, 2, 0]
