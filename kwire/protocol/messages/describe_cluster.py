"""DescribeCluster (API key 60): tells the cluster id, the controller and the brokers."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT8, INT16, INT32, STRING, Array


class DescribeClusterRequest(Message, api_key=60, versions="0-2", flexible_from=0):
    """The request, versions 0 to 2."""

    include_cluster_authorized_operations: bool = field(BOOL, "0+")
    endpoint_type: int = field(INT8, "1+", default=1)
    include_fenced_brokers: bool = field(BOOL, "2+")


class DescribeClusterBroker(Struct):
    broker_id: int = field(INT32, "0+")
    host: str = field(STRING, "0+")
    port: int = field(INT32, "0+")
    rack: str | None = field(STRING, "0+", nullable="0+", default=None)
    is_fenced: bool = field(BOOL, "2+")


class DescribeClusterResponse(Message, api_key=60, versions="0-2", flexible_from=0):
    """The response, versions 0 to 2."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    endpoint_type: int = field(INT8, "1+", default=1)
    cluster_id: str = field(STRING, "0+")
    controller_id: int = field(INT32, "0+", default=-1)
    brokers: list[DescribeClusterBroker] = field(Array(DescribeClusterBroker), "0+")
    cluster_authorized_operations: int = field(INT32, "0+", default=-0x80000000)
