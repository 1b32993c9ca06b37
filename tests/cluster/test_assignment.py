"""Placement of replicas: spread over racks, spread over brokers, leaders on living brokers; checks by hand."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.cluster.assignment import check_manual_assignment, place
from kwire.metadata.image import BrokerImage
from kwire.ports.randomness import SeededRandomness
from kwire.protocol.errors import ErrorCode, KafkaError


def brokers(count: int, racks: int = 0, fenced: tuple[int, ...] = ()) -> list[BrokerImage]:
    return [
        BrokerImage(id=i, epoch=1, endpoints=(), rack=f"r{i % racks}" if racks else None, fenced=i in fenced)
        for i in range(count)
    ]


@given(
    count=st.integers(1, 9),
    racks=st.integers(0, 4),
    partitions=st.integers(1, 40),
    factor=st.integers(1, 9),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_replicas_are_distinct_and_led_by_a_living_broker(count, racks, partitions, factor, seed, data):
    factor = min(factor, count)
    fenced = data.draw(st.sets(st.integers(0, count - 1), max_size=count - 1))
    placed = place(brokers(count, racks, tuple(fenced)), partitions, factor, SeededRandomness(seed))
    assert len(placed) == partitions
    for replicas in placed:
        assert len(replicas) == len(set(replicas)) == factor
        assert set(replicas) <= set(range(count))
        assert replicas[0] not in fenced


@given(st.integers(0, 500))
def test_every_rack_gets_a_replica_of_every_partition(seed):
    for replicas in place(brokers(9, racks=3), 30, 3, SeededRandomness(seed)):
        assert {replica % 3 for replica in replicas} == {0, 1, 2}


@given(st.integers(0, 500))
def test_leaders_and_replicas_are_spread_evenly(seed):
    placed = place(brokers(6, racks=3), 12, 3, SeededRandomness(seed))
    assert set(Counter(replica for replicas in placed for replica in replicas).values()) == {6}
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.get(i, 0) for i in range(6)) <= 2


def test_one_partition_at_a_time_lands_everywhere():
    starts = Counter(place(brokers(3), 1, 1, SeededRandomness(seed))[0][0] for seed in range(60))
    assert set(starts) == {0, 1, 2}


def test_fenced_brokers_are_the_last_choice():
    assert all(set(replicas) == {0, 1} for replicas in place(brokers(3, fenced=(2,)), 9, 2, SeededRandomness(1)))
    assert all(set(replicas) == {0, 1, 2} for replicas in place(brokers(3, fenced=(2,)), 9, 3, SeededRandomness(1)))


@pytest.mark.parametrize(
    ("available", "factor", "message"),
    [
        (
            brokers(1),
            3,
            "The target replication factor of 3 cannot be reached because only 1 broker(s) are registered "
            "or some brokers have all their log directories cordoned.",
        ),
        (brokers(1), 0, "Invalid replication factor 0: the replication factor must be positive."),
        (brokers(2, fenced=(0, 1)), 1, "All brokers are currently fenced."),
        ([], 1, "All brokers are currently fenced."),
    ],
)
def test_too_few_brokers(available, factor, message):
    with pytest.raises(KafkaError) as raised:
        place(available, 1, factor, SeededRandomness(0))
    assert raised.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert raised.value.message == message


@pytest.mark.parametrize(
    ("replicas", "factor", "reason"),
    [
        ([], None, "includes an empty replica list."),
        ([0, 7], None, "includes broker 7, but no such broker is registered."),
        ([1, 0, 1], None, "includes the broker 1 more than once."),
        (
            [0, 1],
            1,
            "includes a partition with 2 replica(s), but this is not consistent with previous partitions, "
            "which have 1 replica(s).",
        ),
    ],
)
def test_manual_assignments_that_are_refused(replicas, factor, reason):
    known = {broker.id: broker for broker in brokers(3)}
    with pytest.raises(KafkaError) as raised:
        check_manual_assignment(known, replicas, factor)
    assert raised.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert raised.value.message == f"The manual partition assignment {reason}"


def test_manual_assignments_that_are_taken():
    known = {broker.id: broker for broker in brokers(3)}
    check_manual_assignment(known, [2, 0], None)
    check_manual_assignment(known, [2, 0], 2)
