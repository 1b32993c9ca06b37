"""Who leads partitions when their logs are lost with a log dir, and found again."""

from __future__ import annotations

from kwire.cluster.lost_logs import missing_dirs, settle_leaders
from kwire.metadata.changes import BrokerRegistered, TopicCreated, apply
from kwire.metadata.image import NO_LEADER, BrokerImage, MetadataImage, PartitionImage, TopicImage


def image_of(*partitions: PartitionImage, fenced: tuple[int, ...] = ()) -> MetadataImage:
    brokers = [BrokerRegistered(BrokerImage(number, 1, (), fenced=number in fenced)) for number in (1, 2, 3)]
    return apply(MetadataImage(), [*brokers, TopicCreated(TopicImage("t", bytes(16), partitions))])


def settled(image: MetadataImage, *with_log: int) -> list[tuple[int, tuple[int, ...], int, int]]:
    """(leader, ISR, leader epoch, partition epoch) of each partition; broker 1 has the logs of these."""
    after = apply(image, settle_leaders(image, 1, lambda topic, index: index in with_log))
    return [
        (state.leader, state.isr, state.leader_epoch, state.partition_epoch) for state in after.topics["t"].partitions
    ]


def test_the_only_replica_is_lost_and_found() -> None:
    image = image_of(PartitionImage((1,), (1,), 1, 4, 7), PartitionImage((1,), (1,), 1, 4, 7))
    assert settled(image, 0, 1) == [(1, (1,), 4, 7), (1, (1,), 4, 7)]
    assert settled(image, 0) == [(1, (1,), 4, 7), (NO_LEADER, (1,), 5, 8)]
    lost = apply(image, settle_leaders(image, 1, lambda topic, index: index == 0))
    assert settled(lost, 0) == [(1, (1,), 4, 7), (NO_LEADER, (1,), 5, 8)]
    assert settled(lost, 0, 1) == [(1, (1,), 4, 7), (1, (1,), 6, 9)]


def test_another_in_sync_replica_takes_the_lead() -> None:
    image = image_of(
        PartitionImage((1, 2, 3), (1, 3), 1),
        PartitionImage((1, 2, 3), (1, 2, 3), 2),
        PartitionImage((2, 1), (2,), 2),
        PartitionImage((2, 3), (2, 3), 2),
    )
    assert settled(image) == [(3, (3,), 1, 1), (2, (2, 3), 0, 1), (2, (2,), 0, 0), (2, (2, 3), 0, 0)]


def test_a_replica_that_is_fenced_does_not_lead() -> None:
    image = image_of(PartitionImage((1, 2), (1, 2), 1), fenced=(2,))
    assert settled(image) == [(NO_LEADER, (2,), 1, 1)]


def test_a_dir_is_missing_as_long_as_a_log_is() -> None:
    here, there = b"h" * 16, b"t" * 16
    topic = TopicImage("t", bytes(16), (PartitionImage((1,), (1,), 1), PartitionImage((2, 1), (2,), 2)))
    image = apply(
        MetadataImage(), [BrokerRegistered(BrokerImage(1, 1, (), log_dirs=(here, there))), TopicCreated(topic)]
    )

    def missing(present: set[bytes], *with_log: int) -> tuple[bytes, ...]:
        return missing_dirs(image, 1, present, lambda topic, index: index in with_log)

    assert missing({here}) == (there,)
    assert missing({here, there}) == ()
    assert missing({here}, 0) == ()  # what this broker follows comes to it again
    assert missing_dirs(image, 2, set(), lambda topic, index: False) == ()
