"""Who leads partitions whose log this broker has lost with a log dir, or found again at a start (KIP-112, KIP-858)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from kwire.metadata.changes import PartitionChanged
from kwire.metadata.image import NO_LEADER, MetadataImage, PartitionImage


def missing_dirs(
    image: MetadataImage, broker_id: int, present: Collection[bytes], has_log: Callable[[str, int], bool]
) -> tuple[bytes, ...]:
    """The ids of the log dirs with which the broker registered last, that are not `present` and may hold logs that are
    not found anywhere else. Pure.
    """
    before = image.brokers.get(broker_id)
    missing = tuple(log_dir for log_dir in before.log_dirs if log_dir not in present) if before is not None else ()
    if missing:
        for topic in image.topics.values():
            for index, state in enumerate(topic.partitions):
                if broker_id in state.isr and not has_log(topic.name, index):
                    return missing
    return ()


def settle_leaders(image: MetadataImage, broker_id: int, has_log: Callable[[str, int], bool]) -> list[PartitionChanged]:
    """What has to change so that the broker leads nothing of which it has no log, and what nobody else can lead.

    A partition that nobody can lead keeps its last ISR: one of those will lead it. Pure.
    """
    changes = []
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if broker_id not in state.isr:
                continue
            changed = state
            if not has_log(topic.name, index):
                changed = _without(image, state, broker_id)
            elif state.leader == NO_LEADER:
                changed = replace(state, leader=broker_id, leader_epoch=state.leader_epoch + 1)
            if changed is not state:
                changed = replace(changed, partition_epoch=state.partition_epoch + 1)
                changes.append(PartitionChanged(topic.name, index, changed))
    return changes


def _without(image: MetadataImage, state: PartitionImage, broker_id: int) -> PartitionImage:
    isr = tuple(replica for replica in state.isr if replica != broker_id) or state.isr
    if state.leader != broker_id:
        return state if isr == state.isr else replace(state, isr=isr)
    leader = next((replica for replica in isr if replica != broker_id and _lives(image, replica)), NO_LEADER)
    return replace(state, isr=isr, leader=leader, leader_epoch=state.leader_epoch + 1)


def _lives(image: MetadataImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced
