"""Which brokers are to hold a partition from now on (KIP-455): what AlterPartitionReassignments asks for.

Pure, as `kwire.cluster.topics`. No replica goes from broker to broker yet: what can be had is another order of the
replicas that there are, and that is done at once. Validation and its messages are those of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from kwire.cluster.assignment import check_manual_assignment
from kwire.metadata.changes import PartitionChanged
from kwire.metadata.image import MetadataImage, PartitionImage
from kwire.protocol.errors import ErrorCode, KafkaError


class Reassignment(NamedTuple):
    """What is asked for; replicas of None end a reassignment that is under way."""

    topic: str
    partition: int
    replicas: Sequence[int] | None


def reassign(
    image: MetadataImage, asked: Iterable[Reassignment], *, may_change_factor: bool
) -> tuple[list[KafkaError | None], list[PartitionChanged]]:
    """Why each could not be, or None; and the changes.

    Errors: UNKNOWN_TOPIC_OR_PARTITION, NO_REASSIGNMENT_IN_PROGRESS, INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR.
    """
    errors: list[KafkaError | None] = []
    changes: dict[tuple[str, int], PartitionChanged] = {}
    for wanted in asked:
        try:
            state = _state(image, wanted)
            replicas = _checked(image, state, wanted.replicas, may_change_factor)
        except KafkaError as error:
            errors.append(error)
            continue
        errors.append(None)
        if replicas != state.replicas:
            changed = replace(state, replicas=replicas, partition_epoch=state.partition_epoch + 1)
            changes[wanted.topic, wanted.partition] = PartitionChanged(wanted.topic, wanted.partition, changed)
    return errors, list(changes.values())


def _state(image: MetadataImage, wanted: Reassignment) -> PartitionImage:
    if image.topic(wanted.topic) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {wanted.topic}.")
    state = image.partition(wanted.topic, wanted.partition)
    if state is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {wanted.topic}:{wanted.partition}."
        )
    return state


def _checked(
    image: MetadataImage, state: PartitionImage, replicas: Sequence[int] | None, may_change_factor: bool
) -> tuple[int, ...]:
    if replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    check_manual_assignment(image.brokers, replicas, None)
    if not may_change_factor and len(replicas) != len(state.replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(state.replicas)} to {len(replicas)}",
        )
    if set(replicas) != set(state.replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "This version of kwire does not move replicas from broker to broker."
        )
    return tuple(replicas)
