"""The APIs this broker offers, each once: ApiVersions, dispatch, the README's table and the fuzz tests derive from it.

An entry names its message module (`kwire.protocol.messages.<module>`), its handler module
(`kwire.broker.apis.<module>`), and the operation and resource it needs. Handler modules are imported on an API's first
request, which keeps the start short. How to add an API: ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kwire.protocol.api_keys import ApiKey
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.broker.templates import TemplateMaker

Handler = Callable[["Broker", "RequestContext", Any], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a caller must be allowed to do: for resources that the request names, or for the cluster."""

    operation: Operation | None
    resource: ResourceType

    @classmethod
    def nothing(cls) -> Needs:
        """Open to every authenticated client (the handler leaves out what the client may not see)."""
        return cls(None, ResourceType.CLUSTER)


@dataclass(frozen=True, slots=True)
class Api:
    """One API: key, the versions offered (both inclusive), module name, what it needs."""

    key: ApiKey
    least: int
    greatest: int
    module: str
    needs: Needs
    listed_from: int | None = None
    """The least version that ApiVersions lists where it is below what is served (Produce, for an old librdkafka)."""
    patient: bool = False
    """Whether thousands may ask for it in one moment, as the members of a group that rebalances do, and who does can
    wait while others produce and fetch."""
    at_once: bool = False
    """Whether its handler seldom waits, and may run without a task: `needs_task` stands before what waits."""

    def load(self) -> LoadedApi:
        """Imports the messages and the handler."""
        messages = import_module(f"kwire.protocol.messages.{self.module}")
        handler = import_module(f"kwire.broker.apis.{self.module}")
        name = "".join(part.capitalize() for part in self.module.split("_"))
        return LoadedApi(
            self,
            getattr(messages, f"{name}Request"),
            getattr(messages, f"{name}Response"),
            handler.handle,
            handler.failed,
            getattr(handler, "templates", None),
        )


class LoadedApi:
    """An API with its code: the message classes, `handle` and `failed`, and perhaps `templates`."""

    __slots__ = ("api", "at_once", "failed", "handle", "patient", "request_type", "response_type", "templates")

    def __init__(
        self,
        api: Api,
        request_type: type,
        response_type: type,
        handle: Handler,
        failed: Callable[..., Any],
        templates: TemplateMaker | None = None,
    ) -> None:
        self.api = api
        self.patient = api.patient
        self.at_once = api.at_once
        self.request_type = request_type
        self.response_type = response_type
        self.handle = handle
        self.failed = failed
        self.templates = templates


def _topic(operation: Operation) -> Needs:
    return Needs(operation, ResourceType.TOPIC)


def _group(operation: Operation) -> Needs:
    return Needs(operation, ResourceType.GROUP)


def _transaction(operation: Operation) -> Needs:
    return Needs(operation, ResourceType.TRANSACTIONAL_ID)


def _cluster(operation: Operation) -> Needs:
    return Needs(operation, ResourceType.CLUSTER)


APIS: tuple[Api, ...] = (
    Api(ApiKey.PRODUCE, 3, 13, "produce", _topic(Operation.WRITE), listed_from=0, at_once=True),
    Api(ApiKey.FETCH, 4, 18, "fetch", _topic(Operation.READ), at_once=True),
    Api(ApiKey.LIST_OFFSETS, 1, 11, "list_offsets", _topic(Operation.DESCRIBE)),
    Api(ApiKey.METADATA, 0, 13, "metadata", _topic(Operation.DESCRIBE)),
    Api(ApiKey.OFFSET_COMMIT, 2, 10, "offset_commit", _group(Operation.READ), at_once=True),
    Api(ApiKey.OFFSET_FETCH, 1, 10, "offset_fetch", _group(Operation.DESCRIBE)),
    Api(ApiKey.FIND_COORDINATOR, 0, 6, "find_coordinator", _group(Operation.DESCRIBE), patient=True),
    Api(ApiKey.JOIN_GROUP, 0, 9, "join_group", _group(Operation.READ), patient=True),
    Api(ApiKey.HEARTBEAT, 0, 4, "heartbeat", _group(Operation.READ), patient=True),
    Api(ApiKey.LEAVE_GROUP, 0, 5, "leave_group", _group(Operation.READ), patient=True),
    Api(ApiKey.SYNC_GROUP, 0, 5, "sync_group", _group(Operation.READ), patient=True),
    Api(ApiKey.DESCRIBE_GROUPS, 0, 6, "describe_groups", _group(Operation.DESCRIBE)),
    Api(ApiKey.LIST_GROUPS, 0, 5, "list_groups", _cluster(Operation.DESCRIBE)),
    Api(ApiKey.API_VERSIONS, 0, 4, "api_versions", Needs.nothing(), patient=True),
    Api(ApiKey.CREATE_TOPICS, 2, 7, "create_topics", _topic(Operation.CREATE)),
    Api(ApiKey.DELETE_TOPICS, 1, 6, "delete_topics", _topic(Operation.DELETE)),
    Api(ApiKey.DELETE_RECORDS, 0, 2, "delete_records", _topic(Operation.DELETE)),
    Api(ApiKey.INIT_PRODUCER_ID, 0, 5, "init_producer_id", _cluster(Operation.IDEMPOTENT_WRITE)),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, "offset_for_leader_epoch", _topic(Operation.DESCRIBE)),
    Api(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, "add_partitions_to_txn", _transaction(Operation.WRITE)),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, "add_offsets_to_txn", _transaction(Operation.WRITE)),
    Api(ApiKey.END_TXN, 0, 5, "end_txn", _transaction(Operation.WRITE)),
    Api(ApiKey.WRITE_TXN_MARKERS, 1, 2, "write_txn_markers", _cluster(Operation.CLUSTER_ACTION)),
    Api(ApiKey.TXN_OFFSET_COMMIT, 0, 5, "txn_offset_commit", _transaction(Operation.WRITE)),
    Api(ApiKey.DESCRIBE_CONFIGS, 1, 4, "describe_configs", _topic(Operation.DESCRIBE_CONFIGS)),
    Api(ApiKey.ALTER_CONFIGS, 0, 2, "alter_configs", _topic(Operation.ALTER_CONFIGS)),
    Api(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, "alter_replica_log_dirs", _cluster(Operation.ALTER)),
    Api(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, "describe_log_dirs", _cluster(Operation.DESCRIBE)),
    Api(ApiKey.CREATE_PARTITIONS, 0, 3, "create_partitions", _topic(Operation.ALTER)),
    Api(ApiKey.DELETE_GROUPS, 0, 2, "delete_groups", _group(Operation.DELETE)),
    Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, "incremental_alter_configs", _topic(Operation.ALTER_CONFIGS)),
    Api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, "alter_partition_reassignments", _cluster(Operation.ALTER)),
    Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, "list_partition_reassignments", _cluster(Operation.DESCRIBE)),
    Api(ApiKey.OFFSET_DELETE, 0, 0, "offset_delete", _group(Operation.DELETE)),
    Api(ApiKey.UPDATE_FEATURES, 0, 2, "update_features", _cluster(Operation.ALTER)),
    Api(ApiKey.DESCRIBE_CLUSTER, 0, 2, "describe_cluster", Needs.nothing()),
    Api(ApiKey.DESCRIBE_PRODUCERS, 0, 0, "describe_producers", _topic(Operation.READ)),
    Api(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, "describe_transactions", _transaction(Operation.DESCRIBE)),
    Api(ApiKey.LIST_TRANSACTIONS, 0, 2, "list_transactions", _transaction(Operation.DESCRIBE)),
    Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, "consumer_group_heartbeat", _group(Operation.READ), patient=True),
    Api(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, "consumer_group_describe", _group(Operation.DESCRIBE)),
    Api(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, "list_config_resources", _cluster(Operation.DESCRIBE_CONFIGS)),
    Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, "describe_topic_partitions", _topic(Operation.DESCRIBE)),
)
"""In the order of their keys."""


class Registry:
    """Finds an API by key and loads its code once."""

    def __init__(self, apis: tuple[Api, ...] = APIS) -> None:
        for api in apis:
            if not isinstance(api.needs, Needs):
                raise TypeError(f"{api.key.name} declares no operation and resource")
        self.apis = apis
        self._by_key = {int(api.key): api for api in apis}
        self._loaded: dict[int, LoadedApi] = {}
        self.found: dict[tuple[int, int], LoadedApi] = {}
        """What `find` has found, by key and version."""

    def find(self, key: int, version: int) -> LoadedApi | None:
        """The API that serves this key and version, or None."""
        loaded = self._loaded.get(key)
        if loaded is None:
            api = self._by_key.get(key)
            if api is None:
                return None
            loaded = self._loaded[key] = api.load()
        if loaded.api.least <= version <= loaded.api.greatest:
            self.found[key, version] = loaded
            return loaded
        return None
