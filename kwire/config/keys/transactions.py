"""Idempotent producers and transactions."""

from __future__ import annotations

from kwire.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LATER,
    LOW,
    READ_ONLY,
    SHORT,
    SUPPORTED,
    ConfigKey,
)
from kwire.config.validity import at_least

# fmt: off
KEYS = (
    ConfigKey("producer.id.expiration.ms", INT, 86400000, SUPPORTED, LOW, CLUSTER_WIDE, at_least(1),
        "A partition forgets an idempotent producer that was silent for this long."),
    ConfigKey("producer.id.expiration.check.interval.ms", INT, 600000, SUPPORTED, LOW, READ_ONLY, at_least(1),
        "How often partitions look for silent producers.", internal=True),
    ConfigKey("transaction.max.timeout.ms", INT, 900000, SUPPORTED, HIGH, READ_ONLY, at_least(1),
        "Longest time-out a transactional producer may ask for."),
    ConfigKey("transactional.id.expiration.ms", INT, 604800000, SUPPORTED, HIGH, READ_ONLY, at_least(1),
        "A transactional id that was unused for this long is forgotten."),
    ConfigKey("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10000, SUPPORTED, LOW, READ_ONLY,
        at_least(1),
        "How often timed-out transactions are looked for."),
    ConfigKey("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3600000, SUPPORTED, LOW, READ_ONLY,
        at_least(1),
        "How often expired transactional ids are looked for."),
    ConfigKey("transaction.partition.verification.enable", BOOLEAN, True, SUPPORTED, LOW, CLUSTER_WIDE, None,
        "Check that a partition takes part in the transaction before its records are taken."),
    ConfigKey("transaction.two.phase.commit.enable", BOOLEAN, False, LATER, LOW, READ_ONLY, None,
        "Allow transactions that an outside coordinator prepares and decides."),
    ConfigKey("transaction.state.log.num.partitions", INT, 50, SUPPORTED, HIGH, READ_ONLY, at_least(1),
        "Partitions of __transaction_state."),
    ConfigKey("transaction.state.log.replication.factor", SHORT, 1, SUPPORTED, HIGH, READ_ONLY, at_least(1),
        "Replicas of __transaction_state. Apache Kafka: 3."),
    ConfigKey("transaction.state.log.min.isr", INT, 1, SUPPORTED, HIGH, READ_ONLY, at_least(1),
        "The min.insync.replicas of __transaction_state. Apache Kafka: 2."),
    ConfigKey("transaction.state.log.segment.bytes", INT, 104857600, SUPPORTED, HIGH, READ_ONLY, at_least(1),
        "Segment size of __transaction_state."),
    ConfigKey("transaction.state.log.load.buffer.size", INT, 5242880, SUPPORTED, HIGH, READ_ONLY, at_least(1),
        "Bytes read at once when transactions are loaded."),
    ConfigKey("add.partitions.to.txn.retry.backoff.ms", INT, 20, SUPPORTED, HIGH, READ_ONLY, at_least(1),
        "Wait before a partition is verified again with the transaction coordinator."),
    ConfigKey("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, SUPPORTED, HIGH, READ_ONLY, at_least(0),
        "Longest time for such retries."),
)
