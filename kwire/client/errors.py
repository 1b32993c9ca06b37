"""What can go wrong between a client and a cluster, besides the error codes a broker answers (KafkaError).

ClientError
├── BrokerUnreachable    no connection came about
│   └── AdvertisedAddressUnreachable   ... to a broker at the address the cluster advertises for it
├── ConnectionLost       the connection ended before the response came; whether the request was served is unknown
│   └── RequestTimeout   ... because the response took too long
├── UnsupportedApi       the broker knows no version of the API that this client knows
└── ProtocolViolation    the broker sent something that is no response
"""

from __future__ import annotations

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.errors import CorruptBatchError


class ClientError(Exception):
    """Its text is one line for people."""


class BrokerUnreachable(ClientError):
    pass


class AdvertisedAddressUnreachable(BrokerUnreachable):
    pass


class ConnectionLost(ClientError):
    pass


class RequestTimeout(ConnectionLost):
    pass


class UnsupportedApi(ClientError):
    pass


class ProtocolViolation(ClientError):
    pass


def is_passing(error: Exception) -> bool:
    """Whether the same may well succeed if tried again: brokers come back, leaders move."""
    if isinstance(error, CorruptBatchError):  # found here, not answered by a broker: it is stored like that
        return False
    if isinstance(error, KafkaError):
        return error.code.retriable or error.code is ErrorCode.BROKER_NOT_AVAILABLE
    return isinstance(error, ConnectionLost | BrokerUnreachable)
