"""ISR changes: what the controller accepts, and how proposals reach the store."""

import pytest
import trio
import trio.testing

from kwire.cluster.isr import ANY_EPOCH, IsrProposal, IsrUpdater, alter_partition
from kwire.cluster.stores.memory import MemoryMetadata
from kwire.metadata.changes import ConfigsChanged, PartitionChanged
from kwire.metadata.image import PartitionImage
from kwire.protocol.errors import ErrorCode, KafkaError

from .images import image, topic, topic_id

STATE = PartitionImage((1, 2, 3), (1, 2), 1, leader_epoch=4, partition_epoch=7)
IMAGE = image(topic("t", STATE), fenced=(3,))


class Outcomes:
    """What came back for each proposal, by name."""

    def __init__(self) -> None:
        self.of: dict[str, PartitionImage | ErrorCode] = {}

    def proposal(self, name: str = "t", *, isr=(1,), leader_epoch=4, partition_epoch=7, index=0, epochs=None):
        def outcome(result):
            assert name not in self.of
            self.of[name] = result

        members = epochs or dict.fromkeys(isr, ANY_EPOCH)
        return IsrProposal(topic_id(name), index, leader_epoch, partition_epoch, members, outcome, outcome)


def proposal(**fields):
    return Outcomes().proposal(**fields)


def test_accepted():
    shrunk = alter_partition(IMAGE, 1, proposal(isr=(1,)))
    assert shrunk == PartitionChanged("t", 0, PartitionImage((1, 2, 3), (1,), 1, leader_epoch=4, partition_epoch=8))
    grown = alter_partition(image(topic("t", STATE)), 1, proposal(epochs={3: 13, 1: 11, 2: ANY_EPOCH}))
    assert grown.partition.isr == (1, 2, 3)
    assert alter_partition(IMAGE, 1, proposal(isr=(2, 1))) is None


@pytest.mark.parametrize(
    ("leader", "fields", "code"),
    [
        (1, {"name": "nope"}, ErrorCode.UNKNOWN_TOPIC_ID),
        (1, {"index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, {"leader_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        (1, {"partition_epoch": 8}, ErrorCode.NOT_CONTROLLER),
        (1, {"leader_epoch": 3}, ErrorCode.FENCED_LEADER_EPOCH),
        (2, {"isr": (2,)}, ErrorCode.INVALID_REQUEST),
        (1, {"partition_epoch": 6}, ErrorCode.INVALID_UPDATE_VERSION),
        (1, {"isr": (2,)}, ErrorCode.INVALID_REQUEST),
        (1, {"isr": (1, 4)}, ErrorCode.INVALID_REQUEST),
        (1, {"isr": (1, 3)}, ErrorCode.INELIGIBLE_REPLICA),
        (1, {"epochs": {1: 11, 2: 5}}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_refused(leader, fields, code):
    with pytest.raises(KafkaError) as raised:
        alter_partition(IMAGE, leader, proposal(**fields))
    assert raised.value.code is code


@pytest.fixture
def metadata():
    names = [f"t{number}" for number in range(20)]
    return MemoryMetadata(image=image(*(topic(name, STATE) for name in names)))


async def test_proposals_that_pile_up_share_a_commit(metadata, nursery, autojump_clock):
    store = metadata.attach()
    updater = IsrUpdater(store, 1)
    outcomes = Outcomes()
    nursery.start_soon(updater.run)
    before = store.image.version
    for number in range(20):
        updater.submit(outcomes.proposal(f"t{number}", isr=(1,)))
    updater.submit(outcomes.proposal("gone"))
    await trio.sleep(1)
    assert store.image.version == before + 1
    assert outcomes.of.pop("gone") is ErrorCode.UNKNOWN_TOPIC_ID
    assert len(outcomes.of) == 20
    for name, state in outcomes.of.items():
        assert state == store.image.topics[name].partitions[0]
        assert (state.isr, state.partition_epoch) == ((1,), 8)


async def test_tries_again_when_another_commit_came_first(metadata, nursery, autojump_clock):
    store = metadata.attach()
    updater = IsrUpdater(store, 1)
    outcomes = Outcomes()
    store.pause()  # this broker's image stays behind
    await metadata.attach().commit([ConfigsChanged("broker", "", {"a": "b"})])
    nursery.start_soon(updater.run)
    updater.submit(outcomes.proposal("t0"))
    await trio.sleep(1)
    assert not outcomes.of
    await store.resume()
    await trio.sleep(1)
    assert outcomes.of["t0"].isr == (1,)


async def test_tries_again_after_a_failure_of_the_store(metadata, nursery, autojump_clock):
    store = metadata.attach()
    updater = IsrUpdater(store, 1)
    outcomes = Outcomes()
    metadata.fail_next = OSError("disk full")
    nursery.start_soon(updater.run)
    updater.submit(outcomes.proposal("t0"))
    await trio.sleep(1)
    assert outcomes.of["t0"].isr == (1,)


async def test_a_leader_ahead_of_the_image_waits_for_it(metadata, nursery, autojump_clock):
    store = metadata.attach()
    updater = IsrUpdater(store, 1)
    outcomes = Outcomes()
    nursery.start_soon(updater.run)
    updater.submit(outcomes.proposal("t0", partition_epoch=8))
    await trio.sleep(1)
    assert not outcomes.of
    updater.submit(outcomes.proposal("t1"))
    await trio.sleep(1)
    assert outcomes.of.keys() == {"t1"}  # others do not wait for it
    ahead = PartitionImage((1, 2, 3), (1, 2, 3), 1, leader_epoch=4, partition_epoch=8)
    await store.commit([PartitionChanged("t0", 0, ahead)])
    await trio.sleep(1)
    assert outcomes.of["t0"].partition_epoch == 9
