"""Where kwire answers otherwise than Apache Kafka on purpose.

Every test that meets one of these names it; a test fails where a difference has no name here, and where a deviation
that it names has gone.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Deviation(NamedTuple):
    """`where` is a pattern for a step of a scenario and a path in its response, such as `Fetch v13 .*error_code`."""

    name: str
    why: str
    where: str

    def covers(self, where: str) -> bool:
        return re.search(self.where, where) is not None


_ALL = (
    Deviation(
        "APIs to come",
        "ApiVersions lists what kwire has; groups, transactions, security and KRaft's own APIs are not among it.",
        r"ApiVersions v\d api_keys\.\d+$",
    ),
    Deviation(
        "no features",
        "Feature levels (KIP-584) tell what a KRaft cluster was upgraded to; kwire has no such levels.",
        r"ApiVersions v\d (supported|finalized)_features",
    ),
    Deviation(
        "no eligible leader replicas",
        "A new KRaft cluster has KIP-966 switched on, and to that end min.insync.replicas set for all brokers; kwire "
        "elects from the ISR only, and its min.insync.replicas is a default.",
        r"min\.insync\.replicas\.config_source$",
    ),
    Deviation(
        "no coordinators",
        "kwire has no group or transaction coordinator yet: FindCoordinator answers COORDINATOR_NOT_AVAILABLE.",
        r"FindCoordinator",
    ),
)

DEVIATIONS = {deviation.name: deviation for deviation in _ALL}
"""By name."""
