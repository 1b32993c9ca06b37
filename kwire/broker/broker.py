"""The broker as a whole: what it is made of, how it starts, how it stops.

Start: lock the logs, open the metadata store, bind the listeners, load the logs, register, lead and follow, accept.
Stop: accept no more, let every connection send what it owes, close the logs and then the store, each cleanly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import trio

from kwire.broker import endpoints
from kwire.broker.connection import Connection
from kwire.broker.connections import Connections
from kwire.broker.coordinators import Coordinators
from kwire.broker.fetch_sessions import FetchSessions
from kwire.broker.limited_log import LimitedLog
from kwire.broker.log_dirs import LogDirs
from kwire.broker.metadata_partitions import MetadataPartitions
from kwire.broker.receive_buffers import ReceiveBuffers
from kwire.broker.registry import Registry
from kwire.broker.request_memory import RequestMemory
from kwire.broker.session import ANONYMOUS, Session
from kwire.broker.templates import Templates
from kwire.cluster.controller import Controller
from kwire.cluster.replicas import ReplicaManager
from kwire.cluster.stores.embedded import EmbeddedStore, StoreError
from kwire.cluster.stores.location import check_location
from kwire.config.broker import BrokerConfig, ConfigError
from kwire.config.dynamic import within_bounds
from kwire.config.tiered_topics import check_tiered
from kwire.config.topic import LogConfig, validate_topic_configs
from kwire.coordinator.producer_ids import ProducerIds
from kwire.metadata.changes import BrokerRegistered, Change, ControllerChanged
from kwire.metadata.image import BrokerImage, Endpoint, MetadataImage
from kwire.metadata.store import MetadataStore
from kwire.ports.alarms import Alarms
from kwire.ports.bundle import Ports
from kwire.ports.transport import Listener, Stream
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.authorizer import AllowAll, Authorizer
from kwire.storage.log_dir import LogDirError
from kwire.storage.manager import LogManager

if TYPE_CHECKING:
    from kwire.cluster.tiering.tiering import Tiering
    from kwire.remote.object_store import ObjectStore

logger = logging.getLogger(__name__)


class StartError(Exception):
    """The broker can't start; one line that says why and what to do."""


class Broker:
    """One broker. Handlers use its public attributes; `run` is its life."""

    def __init__(
        self,
        config: BrokerConfig,
        ports: Ports,
        *,
        store: MetadataStore | None = None,
        authorizer: Authorizer | None = None,
        objects: ObjectStore | None = None,
    ) -> None:
        """`store`: where the metadata is; the embedded journal in the first log dir unless given.

        `objects`: where tiered storage keeps its segments; what the configuration says unless given.
        """
        self._static_config = config
        self.config = config
        """The configuration in force, what admins set at run time included."""
        self.id = config.broker_id
        self.ports = ports
        self.clock = ports.clock
        self.executor = ports.executor
        self.randomness = ports.randomness
        self.alarms = Alarms(ports.clock)
        self.registry = Registry()
        self.templates = Templates()
        self.authorizer = authorizer or AllowAll()
        self.fetch_sessions = FetchSessions(config["max.incremental.fetch.session.cache.slots"], ports.randomness.below)
        self.connections = Connections(config, ports.clock, ports.transport.addresses)
        self.logs = LogManager(
            ports.files, ports.executor, ports.clock, ports.randomness, config, workers=ports.workers
        )
        self.metadata_partitions = MetadataPartitions()
        self.limited_log = LimitedLog()
        self.request_memory = RequestMemory(config["queued.max.request.bytes"])
        self.receive_buffers = ReceiveBuffers()
        self.tiering: Tiering | None = None
        """Present where remote.log.storage.system.enable is set."""
        self._given_store = store
        self._given_objects = objects
        self._stopping = trio.Event()
        self._stop_within = 0.0
        self.stopped = trio.Event()
        """Set when `run` has ended, or failed."""

    async def run(self, *, task_status: trio.TaskStatus[tuple[Endpoint, ...]] = trio.TASK_STATUS_IGNORED) -> None:
        """Starts, reports where each listener is bound, serves until `stop`, and closes what it opened.

        Raises StartError or ConfigError where it can't start, LogDirsFailed when its last log dir fails.
        """
        try:
            await self._run(task_status)
        finally:
            self.stopped.set()

    async def _run(self, task_status: trio.TaskStatus[tuple[Endpoint, ...]]) -> None:
        specs = endpoints.bound(self.config)
        if self.config["advertised.listeners"]:  # what is wrong with them is said before the logs are loaded
            endpoints.advertised(self.config, specs, {spec.name: spec.port for spec in specs}, self.ports.host_name)
        try:
            cluster_id = await self.logs.lock()
        except LogDirError as error:
            raise StartError(str(error)) from None
        try:
            store = self._given_store or await self._open_store(cluster_id)
            try:
                self._take_over(store)
                await self._serve(specs, task_status)
            finally:
                if self._given_store is None:
                    with trio.CancelScope(shield=True):
                        await store.close()
        finally:
            self.logs.unlock()

    def stop(self, within: float) -> None:
        """Begins the end: no more connections, and what waits is answered with what there is. Connections that are
        left after `within` seconds are cut. `run` then returns."""
        self._stop_within = within
        self._stopping.set()

    # Starting

    async def _open_store(self, cluster_id: str | None) -> MetadataStore:
        ports, log_dirs = self.ports, self.logs.dirs
        try:
            await ports.executor.run(check_location, ports.files, log_dirs)
            return await EmbeddedStore.open(
                ports.files, ports.executor, ports.randomness, log_dirs[0].path, cluster_id=cluster_id
            )
        except StoreError as error:
            raise StartError(str(error)) from None

    def _take_over(self, store: MetadataStore) -> None:
        """Makes what depends on the metadata."""
        self.store = store
        self._configure(store.image)
        self.logs.config = self.config
        self.controller = Controller(store, lambda: self.config, self._check_topic_configs, self.randomness)
        self.replicas = ReplicaManager(self.config, store, self.logs, self.clock, self.ports.transport)

    async def _serve(
        self, specs: tuple[endpoints.ListenerSpec, ...], task_status: trio.TaskStatus[tuple[Endpoint, ...]]
    ) -> None:
        store, logs, replicas = self.store, self.logs, self.replicas
        if len(specs) > 1:
            self.connections.of_brokers = replicas.listener
        await self.connections.configure(self._static_config)
        if self.config is not self._static_config:
            await self._limit_connections()
        listeners = await self._listen(specs)
        objects = None
        try:
            try:
                registered = store.image.brokers.get(self.id)
                known = () if registered is None else registered.log_dirs
                await logs.load(store.image.cluster_id, self.id, self._topic_config, self._topic_id, known)
            except LogDirError as error:
                raise StartError(str(error)) from None
            log_dirs = LogDirs(self)
            await self._register(specs, listeners, log_dirs.to_register())
            objects = await self._open_objects()
            await replicas.start(store.image)
            # Up to `subscribe` nothing is awaited: what came meanwhile would be missed.
            self.coordinators = Coordinators(self)
            store.subscribe(self._on_metadata)
            await log_dirs.settle()
            async with trio.open_nursery() as nursery:
                self.producer_ids = ProducerIds(self.controller.reserve_producer_ids, nursery.start_soon)
                nursery.start_soon(log_dirs.run)
                if objects is not None:
                    await self._begin_tiering(objects, nursery)
                nursery.start_soon(logs.run)
                nursery.start_soon(replicas.run)
                nursery.start_soon(self.coordinators.run)
                nursery.start_soon(self.connections.reap_idle)
                nursery.start_soon(self.limited_log.run)
                nursery.start_soon(self.alarms.run)
                for spec, listener in listeners.items():
                    serve_one = partial(self._serve_connection, spec.name, nursery.start_soon)
                    until_room = partial(self.connections.until_room, spec.name)
                    nursery.start_soon(listener.serve, serve_one, until_room)
                task_status.started(
                    tuple(
                        Endpoint(spec.name, listener.host, listener.port, spec.security_protocol)
                        for spec, listener in listeners.items()
                    )
                )
                await self._stopping.wait()
                for listener in listeners.values():
                    listener.close()
                self.connections.stop()
                with trio.move_on_after(self._stop_within):
                    await self.connections.until_none()
                self.connections.close()
                nursery.cancel_scope.cancel()
        finally:
            for listener in listeners.values():
                listener.close()
            with trio.CancelScope(shield=True):
                if objects is not None:
                    await objects.close()
                broker = store.image.brokers.get(self.id)
                await logs.close(broker.epoch if broker is not None else -1)

    async def _open_objects(self) -> ObjectStore | None:
        """The store for tiered storage, if that is switched on."""
        if self.config["remote.log.storage.system.enable"]:
            from kwire.broker.tiered import open_store
            from kwire.remote.errors import RemoteStorageError

            try:
                return self._given_objects or await open_store(self)
            except RemoteStorageError as error:
                raise StartError(str(error)) from None
        image = self.store.image
        for name in image.topics:
            if (
                "remote.storage.enable" in image.config("topic", name)
                and self._topic_config(name).remote_storage_enable
            ):
                raise StartError(
                    f"topic {name} has remote.storage.enable=true, but remote.log.storage.system.enable is false: "
                    "delete such topics, or switch off their remote storage, before switching it off altogether"
                )
        return None

    async def _begin_tiering(self, objects: ObjectStore, nursery: trio.Nursery) -> None:
        from kwire.broker import tiered

        self.tiering = tiered.make(self, objects, nursery.start_soon)
        nursery.start_soon(self.tiering.run)

    async def _listen(self, specs: tuple[endpoints.ListenerSpec, ...]) -> dict[endpoints.ListenerSpec, Listener]:
        listeners: dict[endpoints.ListenerSpec, Listener] = {}
        for spec in specs:
            try:
                listeners[spec] = await self.ports.transport.listen(
                    spec.host, spec.port, self.config["socket.listen.backlog.size"]
                )
            except OSError as error:
                for listener in listeners.values():
                    listener.close()
                where = f"{spec.host or '*'}:{spec.port}"
                raise StartError(
                    f"can't listen on {where} ({error.strerror or error}); "
                    "choose another address with --listen HOST:PORT, or stop what uses it"
                ) from None
        return listeners

    async def _register(
        self,
        specs: tuple[endpoints.ListenerSpec, ...],
        listeners: Mapping[endpoints.ListenerSpec, Listener],
        log_dirs: tuple[bytes, ...],
    ) -> None:
        ports = {spec.name: listener.port for spec, listener in listeners.items()}
        told = endpoints.advertised(self.config, specs, ports, self.ports.host_name)
        before = self.store.image.brokers.get(self.id)
        epoch = 1 if before is None else before.epoch + 1
        broker = BrokerImage(self.id, epoch, told, self.config["broker.rack"], log_dirs=log_dirs)
        changes: list[Change] = [BrokerRegistered(broker)]
        if self.store.image.controller_id != self.id and self._given_store is None:
            changes.append(ControllerChanged(self.id))
        await self.store.commit(changes)

    # Metadata and configuration

    async def _on_metadata(self, before: MetadataImage, after: MetadataImage) -> None:
        if any(before.config("broker", name) is not after.config("broker", name) for name in ("", str(self.id))):
            self._configure(after)
            await self._limit_connections()
            self.logs.config = self.config
            self.replicas.reconfigure(self.config)
        self.coordinators.follow(after)
        if self.tiering is not None:
            self.tiering.follow(after)
        await self.replicas.apply(before, after)
        await self.coordinators.forget(before, after)

    async def _limit_connections(self) -> None:
        """By what admins set at run time: a host that is not known now must keep nobody from his start."""
        try:
            await self.connections.configure(self.config)
        except ConfigError as error:
            logger.error("dynamic limits of connections ignored reason=%r", str(error))

    def _configure(self, image: MetadataImage) -> None:
        """Takes over what admins set at run time."""
        try:
            own, warnings = within_bounds(self._static_config, image.config("broker", str(self.id)))
            everybodys, more = within_bounds(self._static_config, image.config("broker", ""))
            for line in warnings + more:
                logger.warning("dynamic configuration capped %s", line)
            self.config = self._static_config.with_dynamic(own, everybodys)
        except ConfigError as error:
            logger.error("dynamic configuration ignored reason=%r", str(error))
        self.ports.executor.resize(self.config["background.threads"])

    def _topic_config(self, topic: str) -> LogConfig:
        return LogConfig.of(self.config, self.store.image.config("topic", topic))

    def _topic_id(self, topic: str) -> bytes | None:
        image = self.store.image.topic(topic)
        return None if image is None else image.id

    def _check_topic_configs(self, configs: Mapping[str, str]) -> None:
        try:
            validate_topic_configs(self.config, configs)
            check_tiered(self.config, {}, configs)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None

    # Connections

    async def _serve_connection(self, listener: str, spawn: Callable[..., None], stream: Stream) -> None:
        host = stream.peer_host
        await self.connections.until_room(listener)  # others may have come between the accept and now
        if self._stopping.is_set():
            return
        if not self.connections.admits(host):
            self.limited_log.warning(logger, "connection refused", "client=%s reason='max.connections.per.ip'", host)
            return
        session = Session(listener, ANONYMOUS, host, f"{host}:{stream.peer_port}", self.authorizer)
        connection = Connection(self, stream, session)
        self.connections.add(connection, host, listener)
        try:
            await connection.run(spawn)
        finally:
            self.connections.remove(connection, host)
