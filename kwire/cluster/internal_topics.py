"""The topics in which coordinators keep their state, as they are created when first needed (as in Apache Kafka)."""

from __future__ import annotations

from collections.abc import Callable

from kwire.cluster.topics import NewTopic
from kwire.config.broker import BrokerConfig
from kwire.metadata.names import CONSUMER_OFFSETS, TRANSACTION_STATE


def consumer_offsets(config: BrokerConfig) -> NewTopic:
    """`__consumer_offsets`, by the configs `offsets.topic.…`."""
    return NewTopic(
        CONSUMER_OFFSETS,
        config["offsets.topic.num.partitions"],
        config["offsets.topic.replication.factor"],
        configs=(
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(config["offsets.topic.segment.bytes"])),
        ),
    )


def transaction_state(config: BrokerConfig) -> NewTopic:
    """`__transaction_state`, by the configs `transaction.state.log.…`."""
    return NewTopic(
        TRANSACTION_STATE,
        config["transaction.state.log.num.partitions"],
        config["transaction.state.log.replication.factor"],
        configs=(
            ("cleanup.policy", "compact"),
            ("compression.type", "uncompressed"),
            ("min.insync.replicas", str(config["transaction.state.log.min.isr"])),
            ("segment.bytes", str(config["transaction.state.log.segment.bytes"])),
            ("unclean.leader.election.enable", "false"),
        ),
    )


COORDINATORS_TOPICS: dict[str, Callable[[BrokerConfig], NewTopic]] = {
    CONSUMER_OFFSETS: consumer_offsets,
    TRANSACTION_STATE: transaction_state,
}
"""By name."""
