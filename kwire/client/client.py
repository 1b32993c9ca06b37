"""The cluster as a client sees it: connections by broker, metadata, and retries until a deadline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from kwire.client.addresses import Address, show_address
from kwire.client.connection import CONNECT_TIMEOUT, REQUEST_TIMEOUT, Connection
from kwire.client.errors import AdvertisedAddressUnreachable, BrokerUnreachable, ClientError, is_passing
from kwire.client.metadata import ClusterMetadata, Topic, unknown_partition
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from kwire.ports.transport import Transport
    from kwire.protocol.schema import Message
    from kwire.protocol.types import TopicPartition

RETRY_TIMEOUT = 60.0
"""Seconds until an operation that keeps failing is given up."""

FIRST_BACKOFF = 0.05
LONGEST_BACKOFF = 1.0
"""Seconds between tries: the pause doubles from the first to the longest."""

UNKNOWN_TOPIC_GRACE = 0.5
"""Seconds in which a topic nobody knows may still turn up: news of a new one takes a moment to reach every broker."""

CREATION_GRACE = 5.0
"""The same where the broker was asked to create it: whether it does, it does not say."""

NEVER_MET_GRACE = 5.0
"""Seconds until a broker is given up that was never reached: more likely its advertised address is wrong than that it
just restarts."""

_UNCERTAIN = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}

T = TypeVar("T")
R = TypeVar("R")


class Client:
    """Connections to one cluster. As a context manager it closes them in the end; they open when needed.

    `request_timeout` (seconds) bounds one request, `retry_timeout` one operation with all its retries.
    """

    def __init__(
        self,
        transport: Transport,
        bootstrap: Sequence[Address],
        *,
        client_id: str = "kwire",
        connect_timeout: float = CONNECT_TIMEOUT,
        request_timeout: float = REQUEST_TIMEOUT,
        retry_timeout: float = RETRY_TIMEOUT,
    ) -> None:
        self.metadata = ClusterMetadata()
        self.request_timeout = request_timeout
        self.retry_timeout = retry_timeout
        self._transport = transport
        self._bootstrap = list(bootstrap)
        self._client_id = client_id
        self._connect_timeout = connect_timeout
        self._connections: dict[int, Connection] = {}
        self._first: Connection | None = None
        self._met: set[int] = set()
        self._opening: dict[int | None, trio.Lock] = {}
        """One lock a broker (None: any), so that one that does not answer holds up no other."""

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections at once."""
        for connection in [*self._connections.values(), *([self._first] if self._first else [])]:
            connection.close()
        self._connections.clear()
        self._first = None

    async def any_connection(self) -> Connection:
        """A connection to some broker: an open one, else to a bootstrap address, else to a broker known by now.

        BrokerUnreachable if none answers.
        """
        async with self._opening.setdefault(None, trio.Lock()):
            for connection in [self._first, *self._connections.values()]:
                if connection is not None and not connection.closed:
                    return connection
            failures: list[ClientError] = []
            for address in dict.fromkeys([*self._bootstrap, *self.metadata.brokers.values()]):
                try:
                    self._first = await self._open(address)
                    return self._first
                except ClientError as error:
                    failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        raise BrokerUnreachable("; ".join(map(str, failures)))

    async def connection(self, broker: int) -> Connection:
        """A connection to the broker with this id, at the address the cluster advertises for it."""
        async with self._opening.setdefault(broker, trio.Lock()):
            connection = self._connections.get(broker)
            if connection is not None and not connection.closed:
                return connection
            address = self.metadata.brokers.get(broker)
            if address is None:
                raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker} is not in the cluster's metadata")
            first = self._first
            if first is not None and not first.closed and (first.host, first.port) == address:
                self._connections[broker] = first
                self._met.add(broker)
                return first
            try:
                self._connections[broker] = await self._open(address)
                self._met.add(broker)
            except BrokerUnreachable as error:
                if broker in self._met:
                    raise
                raise AdvertisedAddressUnreachable(
                    f"the cluster advertises broker {broker} at {show_address(*address)}, which cannot be reached "
                    f"({error}): check its advertised.listeners"
                ) from error
            return self._connections[broker]

    async def refresh(self, topics: Collection[str] | None = (), *, create: bool = False) -> None:
        """Asks for metadata of these topics (None: of all) and of the brokers.

        With `create`, a broker that creates topics by itself creates the missing ones. Errors of single topics are
        kept in `metadata.errors`.
        """
        connection = await self.any_connection()
        version = connection.version(MetadataRequest)
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        if version == 0 and topics is None:
            wanted = []
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create or version < 4)
        self.metadata.update(await connection.call(request, version), all_topics=topics is None)

    async def topic(self, name: str, *, create: bool = False) -> Topic:
        """What Metadata says of a topic, asked anew.

        An unknown topic is an error after a moment's grace, with `create` a longer one.
        """
        return (await self.topics([name], create=create))[name]

    async def topics(self, names: Collection[str], *, create: bool = False) -> dict[str, Topic]:
        """The same for several topics."""

        async def ask() -> dict[str, Topic]:
            await self.refresh(names, create=create)
            return {name: self.metadata.topic(name) for name in names}

        return await self.retrying(ask, unknown_topic_grace=CREATION_GRACE if create else UNKNOWN_TOPIC_GRACE)

    async def call(self, request: Message, *, broker: int | None = None, timeout: float | None = None) -> Any:
        """Sends a request to the broker with this id, else to any."""
        connection = await (self.any_connection() if broker is None else self.connection(broker))
        return await connection.call(request, timeout=timeout)

    async def call_controller(self, request: Message, *, timeout: float | None = None) -> Any:
        """Sends a request to the cluster's controller."""
        if self.metadata.controller not in self.metadata.brokers:
            await self.refresh()
        if self.metadata.controller not in self.metadata.brokers:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        return await self.call(request, broker=self.metadata.controller, timeout=timeout)

    async def retrying(self, attempt: Callable[[], Awaitable[T]], *, unknown_topic_grace: float | None = None) -> T:
        """Repeats an operation that fails for a passing reason, metadata refreshed in between, until the deadline.

        A cluster that was never reached is not waited for. The last failure is raised.
        """
        started = trio.current_time()
        backoff = FIRST_BACKOFF
        while True:
            try:
                return await attempt()
            except (KafkaError, ClientError) as error:
                never_reached = isinstance(error, ClientError) and not self.metadata.brokers
                if never_reached or not is_passing(error):
                    raise
                limit = self.retry_timeout
                if isinstance(error, AdvertisedAddressUnreachable):
                    limit = min(limit, NEVER_MET_GRACE)
                if unknown_topic_grace is not None and isinstance(error, KafkaError) and error.code in _UNCERTAIN:
                    limit = min(limit, unknown_topic_grace)
                if trio.current_time() + backoff > started + limit:
                    raise
            await trio.sleep(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF)
            await self.refresh_quietly(())

    async def refresh_quietly(self, topics: Collection[str]) -> None:
        """`refresh` before another try: where it fails, that try will say so."""
        try:
            await self.refresh(topics)
        except (KafkaError, ClientError):
            return

    async def at_leaders(
        self,
        wanted: Mapping[TopicPartition, T],
        ask: Callable[[Connection, dict[TopicPartition, T]], Awaitable[dict[TopicPartition, R | KafkaError]]],
    ) -> dict[TopicPartition, R | KafkaError]:
        """Asks the leader of each partition, all leaders at once, and asks again for those that fail for a passing
        reason, until the deadline. What failed to the end has its KafkaError in the result.

        `ask` gets a leader's connection and its partitions, and returns what the leader said of them.
        """
        done: dict[TopicPartition, R | KafkaError] = {}
        failed: dict[TopicPartition, KafkaError] = {}
        lost: ClientError | None = None
        unknown = await self._unknown(wanted)
        done.update((partition, unknown_partition(*partition)) for partition in unknown)
        left = {partition: value for partition, value in wanted.items() if partition not in unknown}

        async def ask_leader(broker: int, partitions: dict[TopicPartition, T]) -> None:
            nonlocal lost
            try:
                answers = await ask(await self.connection(broker), partitions)
            except ClientError as error:
                lost = error
                return
            except KafkaError as error:
                answers = dict.fromkeys(partitions, error)
            for partition in partitions:
                answer = answers.get(partition)
                if answer is None:
                    left_out = f"the broker's response leaves {partition[0]}-{partition[1]} out"
                    answer = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, left_out)
                if isinstance(answer, KafkaError) and is_passing(answer):
                    failed[partition] = answer
                else:
                    done[partition] = answer
                    left.pop(partition, None)

        async def round_of_requests() -> None:
            nonlocal lost
            lost = None
            failed.clear()
            leaders: dict[int, dict[TopicPartition, T]] = {}
            for partition, value in left.items():
                try:
                    leaders.setdefault(self.metadata.leader(*partition), {})[partition] = value
                except KafkaError as error:
                    failed[partition] = error
            async with trio.open_nursery() as nursery:
                for broker, partitions in leaders.items():
                    nursery.start_soon(ask_leader, broker, partitions)
            if left:
                await self.refresh_quietly(sorted({topic for topic, _ in left}))
                raise lost or next(iter(failed.values()))

        try:
            await self.retrying(round_of_requests)
        except KafkaError:
            done.update(failed)
        return done

    async def know(self, topics: Iterable[str]) -> None:
        """Makes sure that the metadata of these topics is there. KafkaError if one does not exist."""
        missing = {name for name in topics if name not in self.metadata.topics}
        if missing:
            await self.topics(sorted(missing))

    async def _unknown(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Those of the partitions that their topics do not have. KafkaError if a topic does not exist."""

        def missing() -> set[TopicPartition]:
            topics = self.metadata.topics
            return {(topic, number) for topic, number in partitions if number not in topics[topic].partitions}

        partitions = list(partitions)
        await self.know(topic for topic, _ in partitions)
        if missing():  # more may have been created since
            await self.topics(sorted({topic for topic, _ in missing()}))
        return missing()

    async def _open(self, address: Address) -> Connection:
        return await Connection.open(
            self._transport,
            *address,
            client_id=self._client_id,
            connect_timeout=self._connect_timeout,
            request_timeout=self.request_timeout,
        )
