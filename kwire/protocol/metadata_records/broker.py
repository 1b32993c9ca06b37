"""RegisterBrokerRecord (0) and UnregisterBrokerRecord (1): the brokers of the cluster, and their log dirs."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT16, INT32, INT64, STRING, UINT16, UUID, Array


class BrokerEndpoint(Struct):
    name: str = field(STRING, "0+")
    host: str = field(STRING, "0+")
    port: int = field(UINT16, "0+")
    security_protocol: int = field(INT16, "0+")


class BrokerFeature(Struct):
    name: str = field(STRING, "0+")
    min_supported_version: int = field(INT16, "0+")
    max_supported_version: int = field(INT16, "0+")


class RegisterBrokerRecord(Message, api_key=0, versions="0-4", flexible_from=0):
    """A broker registered. `log_dirs` are the ids of those it could use then (version 3 on)."""

    broker_id: int = field(INT32, "0+")
    is_migrating_zk_broker: bool = field(BOOL, "2+")
    incarnation_id: bytes = field(UUID, "0+")
    broker_epoch: int = field(INT64, "0+")
    end_points: list[BrokerEndpoint] = field(Array(BrokerEndpoint), "0+")
    features: list[BrokerFeature] = field(Array(BrokerFeature), "0+")
    rack: str | None = field(STRING, "0+", nullable="0+")
    fenced: bool = field(BOOL, "0+", default=True)
    in_controlled_shutdown: bool = field(BOOL, "1+")
    log_dirs: list[bytes] = field(Array(UUID), "3+", tag=0)
    cordoned_log_dirs: list[bytes] | None = field(Array(UUID), "4+", nullable="4+", default=None, tag=1)


class UnregisterBrokerRecord(Message, api_key=1, versions="0", flexible_from=0):
    """A broker left for good."""

    broker_id: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "0+")
