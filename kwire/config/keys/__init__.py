"""The table of every broker key: all of Apache Kafka 4.3.1's, each once, by subject.

Types, defaults, validity and who may change a key while the broker runs are Apache Kafka's; where kwire's default is
another, the doc says which is Kafka's.
"""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.definition import ConfigKey
from kwire.config.keys import (
    groups,
    kraft,
    log,
    network,
    replication,
    sasl,
    security,
    server,
    share,
    tiered,
    transactions,
)

BROKER_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for room in (network, server, log, replication, transactions, groups, share, tiered, security, sasl, kraft)
    for key in room.KEYS
}
"""Every broker key by its name."""
