"""The topics in which the brokers keep their own state, as they are created when first needed (as in Apache Kafka)."""

from __future__ import annotations

from collections.abc import Callable

from kwire.cluster.topics import NewTopic
from kwire.config.broker import BrokerConfig
from kwire.config.remote_log_metadata import RemoteLogMetadataConfig
from kwire.metadata.names import CONSUMER_OFFSETS, REMOTE_LOG_METADATA, TRANSACTION_STATE


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


def remote_log_metadata(config: RemoteLogMetadataConfig) -> NewTopic:
    """`__remote_log_metadata`, by the configs `rlmm.config.remote.log.metadata.topic.…`."""
    prefix = "remote.log.metadata.topic."
    return NewTopic(
        REMOTE_LOG_METADATA,
        config[prefix + "num.partitions"],
        config[prefix + "replication.factor"],
        configs=(
            ("cleanup.policy", "delete"),
            # What it says of a segment may be all that is left of it on this machine, when the power goes.
            ("flush.messages", "1"),
            ("min.insync.replicas", str(config[prefix + "min.isr"])),
            ("remote.storage.enable", "false"),
            ("retention.ms", str(config[prefix + "retention.ms"])),
        ),
    )


COORDINATORS_TOPICS: dict[str, Callable[[BrokerConfig], NewTopic]] = {
    CONSUMER_OFFSETS: consumer_offsets,
    TRANSACTION_STATE: transaction_state,
}
"""By name."""
