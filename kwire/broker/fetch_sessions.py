"""Fetch sessions (KIP-227): a client names its partitions once and then only what changes. No I/O, no clock here.

A session is known by (session id, epoch). The client's request and the answer:

    id 0, epoch 0     a full fetch; opens a session if there is room for one; the answer carries its id
    id 0, epoch -1    a full fetch outside any session
    id n, epoch 0     closes session n, then as the first line
    id n, epoch -1    closes session n, then as the second line
    id n, epoch m     an incremental fetch: m must be the epoch that follows the last one; when the session's last
                      partition is forgotten, the session is over

An incremental answer leaves out the partitions that have nothing new to say. A session does not even look at those of
a consumer: it watches them, and looks at one when something happened to it, when the client asks something else of it,
or when the last look left something to say. So a fetch costs what changed, however many partitions the session has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.cluster.partition import Partition

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1

EVICTION_AFTER_MS: Final = 120_000
"""A session unused for this long is evicted for any new one, and one that is older than this for a larger one (Kafka's
`MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS`)."""

PartitionKey = tuple[str | bytes, int]
"""Topic id from Fetch v13 on, topic name before; partition number."""


class CachedPartition:
    """What a session remembers of a partition: what the client asked last and what it was told last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "follower_log_start_offset",
        "index",
        "last_fetched_epoch",
        "max_bytes",
        "name",
        "order",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
        "watched",
    )

    def __init__(self, topic: str | bytes, index: int, order: int = 0) -> None:
        self.topic = topic
        self.index = index
        self.order = order
        """Those with a lower one are served before it."""
        self.watched: Partition | None = None
        """What the session watches to learn when this is due."""
        self.name: str | None = None
        """The topic's name, once it is known: a session keeps to it whatever becomes of the topic."""
        self.max_bytes = 0
        self.fetch_offset = 0
        self.current_leader_epoch = -1
        self.last_fetched_epoch = -1
        self.follower_log_start_offset = -1
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1

    def ask(self, request: object) -> None:
        """Takes over what a FetchPartition of the request says. Any negative epoch is none."""
        self.max_bytes = request.partition_max_bytes  # type: ignore[attr-defined]
        self.fetch_offset = request.fetch_offset  # type: ignore[attr-defined]
        self.current_leader_epoch = max(request.current_leader_epoch, -1)  # type: ignore[attr-defined]
        self.last_fetched_epoch = max(request.last_fetched_epoch, -1)  # type: ignore[attr-defined]
        self.follower_log_start_offset = request.log_start_offset  # type: ignore[attr-defined]

    def has_news(self, *, has_records: bool, high_watermark: int, log_start_offset: int, special: bool) -> bool:
        """Whether an incremental answer must name this partition; remembers what it is told.

        `special`: an error, a diverging epoch or a preferred replica. With an error a high watermark of -1 is told, so
        that the answer after it names the partition again and the client learns of its end.
        """
        news = (
            has_records
            or special
            or high_watermark != self.sent_high_watermark
            or log_start_offset != self.sent_log_start_offset
        )
        self.sent_high_watermark = high_watermark
        self.sent_log_start_offset = log_start_offset
        return news


class Fetching(Protocol):
    """A fetch of a session."""

    def give_way(self) -> None:
        """Another one of the same session came."""


_ORDER: Final = attrgetter("order")


class FetchSession:
    """The partitions of one client, and which of them are due to be looked at. A `kwire.cluster.waiting.Waiter`."""

    __slots__ = (
        "_due",
        "_orders",
        "_watched",
        "bound",
        "by_topic_id",
        "closed",
        "created_ms",
        "epoch",
        "fetching",
        "id",
        "last_used_ms",
        "on_due",
        "partitions",
        "privileged",
    )

    def __init__(self, session_id: int, *, privileged: bool, by_topic_id: bool, now_ms: int) -> None:
        self.id = session_id
        self.epoch = 1
        self.privileged = privileged
        """A follower's: evicted only for another follower's."""
        self.by_topic_id = by_topic_id
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.partitions: dict[PartitionKey, CachedPartition] = {}
        self.fetching: Fetching | None = None
        """The fetch that is under way, if there is one. Another one that comes meanwhile has to look at everything."""
        self.bound: object = None
        """Up to where the client may see, as it said with its last fetch."""
        self.closed = False
        self.on_due: Callable[[], None] | None = None
        """Called when a partition that is watched becomes due."""
        self._orders = count()
        self._due: dict[CachedPartition, None] = {}
        self._watched: dict[Partition, CachedPartition] = {}

    def update(self, asked: Iterable[tuple[PartitionKey, object]], forgotten: Iterable[PartitionKey] = ()) -> None:
        """Adds and changes the partitions of a request, which are due then, and drops the forgotten ones."""
        for key, request in asked:
            cached = self.partitions.get(key)
            if cached is None:
                cached = self.partitions[key] = CachedPartition(*key, next(self._orders))
            cached.ask(request)
            self._due[cached] = None
        for key in forgotten:
            cached = self.partitions.pop(key, None)
            if cached is not None:
                self._due.pop(cached, None)
                self._unwatch(cached)

    def take_due(self, *, everything: bool = False) -> list[CachedPartition]:
        """Those to look at now, in the order in which they are served; after that, none is due."""
        taken = sorted(self.partitions.values() if everything else self._due, key=_ORDER)
        self._due = {}
        return taken

    @property
    def any_due(self) -> bool:
        return bool(self._due)

    def make_due(self, cached: CachedPartition) -> None:
        """There is more to say of it than was said: the next fetch looks at it whatever happens."""
        if self.partitions.get((cached.topic, cached.index)) is cached:
            self._due[cached] = None

    def watch(self, cached: CachedPartition, partition: Partition) -> None:
        """It will be due as soon as the partition changes."""
        if self.partitions.get((cached.topic, cached.index)) is not cached:
            return  # forgotten meanwhile
        if cached.watched is not partition:
            if cached.watched is not None:
                self._unwatch(cached)
            cached.watched = partition
            self._watched[partition] = cached
            partition.watch(self)

    def wake(self, partition: Partition) -> None:
        """Called by a partition that changed. It is not watched any more: that it changes again would say nothing."""
        cached = self._watched.get(partition)
        if cached is not None:
            self._unwatch(cached)
            self._due[cached] = None
            if self.on_due is not None:
                self.on_due()

    def _unwatch(self, cached: CachedPartition) -> None:
        partition, cached.watched = cached.watched, None
        if partition is not None:
            del self._watched[partition]
            partition.unwatch(self)

    def close(self) -> None:
        """Nothing is watched any more, as soon as the fetch that is under way has ended."""
        self.closed = True
        if self.fetching is None:
            for cached in list(self._watched.values()):
                self._unwatch(cached)

    def end_fetch(self, fetching: Fetching) -> None:
        """That fetch is over, unless it was over already."""
        if self.fetching is fetching:
            self.fetching = None
        if self.closed:
            self.close()

    def serve_last(self, served: Iterable[CachedPartition]) -> None:
        """Puts partitions that just sent records behind the others, so that none starves under `max_bytes`."""
        for cached in served:
            cached.order = next(self._orders)

    @property
    def value(self) -> tuple[bool, int]:
        """Grows with the worth of keeping this session."""
        return self.privileged, len(self.partitions)

    def yields_to(self, privileged: bool) -> bool:
        """Whether it may be evicted, while it is in use, for a more valuable one: not while it is new, but always for a
        follower's."""
        grown = self.last_used_ms - self.created_ms > EVICTION_AFTER_MS
        return grown or (privileged and not self.privileged)

    def advance(self) -> None:
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1


class FetchSessions:
    """All sessions of a broker, at most `slots` (`max.incremental.fetch.session.cache.slots`)."""

    def __init__(self, slots: int, draw: Callable[[int], int]) -> None:
        """`draw(n)` is a random integer in [0, n)."""
        self._slots = slots
        self._draw = draw
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def resume(self, session_id: int, epoch: int, *, by_topic_id: bool, now_ms: int) -> FetchSession:
        """The session for an incremental fetch, its epoch already the next one's.

        Raises KafkaError FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or FETCH_SESSION_TOPIC_ID_ERROR.
        """
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_topic_id != by_topic_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.advance()
        session.last_used_ms = now_ms
        # Kept in order of use, so that the first one is the one unused for longest.
        self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def open(self, *, privileged: bool, by_topic_id: bool, size: int, now_ms: int) -> FetchSession | None:
        """A new session for `size` partitions, or None where there is no room for one."""
        if len(self._sessions) >= self._slots and not self._evict(privileged, size, now_ms):
            return None
        session_id = self._draw(2**31 - 1) + 1
        while session_id in self._sessions:
            session_id = self._draw(2**31 - 1) + 1
        session = FetchSession(session_id, privileged=privileged, by_topic_id=by_topic_id, now_ms=now_ms)
        self._sessions[session_id] = session
        return session

    def _evict(self, privileged: bool, size: int, now_ms: int) -> bool:
        """Makes room: evicts the session unused for longest if it is stale, else the least valuable that yields."""
        if not self._sessions:
            return False
        victim: FetchSession | None = next(iter(self._sessions.values()))
        assert victim is not None
        if now_ms - victim.last_used_ms <= EVICTION_AFTER_MS:
            yielding = (session for session in self._sessions.values() if session.yields_to(privileged))
            victim = min(yielding, key=lambda session: session.value, default=None)
            if victim is None or victim.value >= (privileged, size):
                return False
        self.close(victim.id)
        return True
