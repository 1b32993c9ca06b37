"""Elections: who leads next, what happens to the ISR and the epochs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.cluster.elections import Election, broker_back, broker_lost, elect, elect_leader
from kwire.metadata.changes import PartitionChanged
from kwire.metadata.image import NO_LEADER, PartitionImage
from kwire.protocol.errors import ErrorCode, KafkaError

from .images import image, topic


def partition(leader: int, isr: tuple[int, ...] = (1, 2, 3), epoch: int = 4) -> PartitionImage:
    return PartitionImage((1, 2, 3), isr, leader, leader_epoch=epoch, partition_epoch=epoch + 5)


def test_a_leader_that_still_may_lead_stays():
    assert elect(partition(2), {1, 2, 3}) is None


def test_the_first_live_replica_of_the_isr_follows():
    elected = elect(partition(1, isr=(3, 2, 1)), {2, 3})
    assert elected == PartitionImage((1, 2, 3), (3, 2, 1), 2, leader_epoch=5, partition_epoch=10)


def test_preferred_returns_to_the_first_replica():
    assert elect(partition(2), {1, 2, 3}, Election.PREFERRED).leader == 1
    assert elect(partition(2, isr=(2, 3)), {1, 2, 3}, Election.PREFERRED) is None


def test_without_a_live_in_sync_replica_there_is_no_leader_and_the_isr_is_remembered():
    elected = elect(partition(1, isr=(1,)), {2, 3}, isr=())
    assert elected == PartitionImage((1, 2, 3), (1,), NO_LEADER, leader_epoch=5, partition_epoch=10)


def test_unclean_takes_any_live_replica_alone():
    elected = elect(partition(1, isr=(1,)), {2, 3}, Election.UNCLEAN, isr=())
    assert elected == PartitionImage((1, 2, 3), (2,), 2, leader_epoch=5, partition_epoch=10)


def test_unclean_prefers_the_isr():
    assert elect(partition(1, isr=(1, 3)), {2, 3}, Election.UNCLEAN, isr=(3,)).leader == 3


def test_a_smaller_isr_alone_raises_only_the_partition_epoch():
    assert elect(partition(1), {1, 2}, isr=(1, 2)) == PartitionImage(
        (1, 2, 3), (1, 2), 1, leader_epoch=4, partition_epoch=10
    )


@given(
    leader=st.sampled_from([NO_LEADER, 1, 2, 3]),
    isr=st.permutations([1, 2, 3]).flatmap(lambda order: st.integers(1, 3).map(lambda n: tuple(order[:n]))),
    live=st.sets(st.integers(1, 3)),
    election=st.sampled_from(Election),
)
def test_laws(leader, isr, live, election):
    before = partition(leader, isr)
    after = elect(before, live, election) or before
    changed = after is not before
    assert after.partition_epoch == before.partition_epoch + changed
    assert after.leader_epoch == before.leader_epoch + (changed and after.leader_epoch != before.leader_epoch)
    assert after.leader == before.leader or after.leader_epoch > before.leader_epoch
    assert after.leader in live or after.leader == NO_LEADER
    if election is not Election.UNCLEAN:
        assert after.leader in isr or after.leader == NO_LEADER
    if live & set(isr):
        assert after.leader in isr
        assert after.isr == isr


def test_a_lost_broker_leaves_isr_and_leadership_and_comes_back():
    before = image(
        topic("led", partition(2)), topic("followed", partition(1)), topic("alone", PartitionImage((2,), (2,), 2, 0, 0))
    )
    lost = broker_lost(before, 2, unclean=lambda topic: False)
    assert lost == [
        PartitionChanged("led", 0, PartitionImage((1, 2, 3), (1, 3), 1, 5, 10)),
        PartitionChanged("followed", 0, PartitionImage((1, 2, 3), (1, 3), 1, 4, 10)),
        PartitionChanged("alone", 0, PartitionImage((2,), (2,), NO_LEADER, 1, 1)),
    ]
    without = image(*(topic(change.topic, change.partition) for change in lost), fenced=(2,))
    assert broker_back(without, 2, unclean=lambda topic: False) == [
        PartitionChanged("alone", 0, PartitionImage((2,), (2,), 2, 2, 2))
    ]


def test_unclean_elections_are_a_matter_of_the_topic():
    before = image(topic("safe", partition(2, isr=(2,))), topic("loose", partition(2, isr=(2,))))
    safe, loose = broker_lost(before, 2, unclean=lambda name: name == "loose")
    assert safe.partition.leader == NO_LEADER
    assert (loose.partition.leader, loose.partition.isr) == (1, (1,))


@pytest.mark.parametrize(
    ("state", "election", "fenced", "code"),
    [
        (partition(1), Election.PREFERRED, (), ErrorCode.ELECTION_NOT_NEEDED),
        (partition(2), Election.UNCLEAN, (), ErrorCode.ELECTION_NOT_NEEDED),
        (partition(2, isr=(2, 3)), Election.PREFERRED, (), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (partition(NO_LEADER), Election.UNCLEAN, (1, 2, 3), ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_elections_that_are_refused(state, election, fenced, code):
    with pytest.raises(KafkaError) as raised:
        elect_leader(image(topic("t", state), fenced=fenced), "t", 0, election)
    assert raised.value.code is code


@pytest.mark.parametrize(("name", "index"), [("nope", 0), ("t", 1), ("t", -1)])
def test_elections_of_nothing(name, index):
    with pytest.raises(KafkaError) as raised:
        elect_leader(image(topic("t", partition(1))), name, index, Election.PREFERRED)
    assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_elect_leaders_unclean():
    change = elect_leader(image(topic("t", partition(NO_LEADER, isr=(1,))), fenced=(1,)), "t", 0, Election.UNCLEAN)
    assert change == PartitionChanged("t", 0, PartitionImage((1, 2, 3), (2,), 2, 5, 10))
