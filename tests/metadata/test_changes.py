"""Applying changes: what they do, that the old image stays, that a commit copies each part once, JSON and back."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.metadata.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    Change,
    ConfigsChanged,
    FeatureLevelsChanged,
    InvalidChange,
    LeaderEpochsBumped,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
    apply,
)
from kwire.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from kwire.metadata.text import change_from_json, change_to_json, image_from_json, image_to_json
from tests.metadata.strategies import changes

P = PartitionImage((1,), (1,), 1)


def created(name: str, count: int = 1) -> TopicCreated:
    return TopicCreated(TopicImage(name, name.encode().ljust(16), (P,) * count), {})


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_history_is_the_same_in_one_commit_in_many_and_from_json(data: st.DataObject) -> None:
    image = MetadataImage(cluster_id="c")
    history: list[Change] = []
    for _ in range(data.draw(st.integers(1, 8))):
        change = data.draw(changes(image))
        before = image_to_json(image)
        following = apply(image, [change])
        assert image_to_json(image) == before
        assert following.version == image.version + 1
        assert set(following.topic_names.values()) == set(following.topics)
        image = following
        history.append(change)
        assert change_from_json(json.loads(json.dumps(change_to_json(change)))) == change
    at_once = apply(MetadataImage(cluster_id="c"), history)
    assert at_once.version == 1
    assert image_to_json(at_once) | {"version": 0} == image_to_json(image) | {"version": 0}
    assert image_from_json(json.loads(json.dumps(image_to_json(image)))) == image


@pytest.mark.parametrize(
    "change",
    [
        created("a"),
        TopicCreated(TopicImage("b", b"a".ljust(16), (P,))),
        TopicDeleted("b"),
        PartitionsAdded("b", (P,)),
        PartitionChanged("b", 0, P),
        PartitionChanged("a", 1, P),
        PartitionChanged("a", -1, P),
        BrokerUnregistered(9),
        ProducerIdsReserved(999),
        FeatureLevelsChanged({"group.version": 1, "transaction.version": 3}),
        FeatureLevelsChanged({"group.version": -1}),
        FeatureLevelsChanged({"metadata.version": 1}),
    ],
    ids=repr,
)
def test_changes_that_do_not_fit(change: Change) -> None:
    image = apply(MetadataImage(), [created("a"), ProducerIdsReserved(1000)])
    with pytest.raises(InvalidChange):
        apply(image, [change])


def test_changes_of_one_commit_build_on_each_other() -> None:
    other = PartitionImage((2,), (2,), 2, 3, 4)
    image = apply(
        MetadataImage(),
        [
            created("a"),
            PartitionsAdded("a", (P,)),
            PartitionChanged("a", 1, other),
            created("b"),
            PartitionChanged("b", 0, other),
            TopicDeleted("b"),
            created("b", 3),
            LeaderEpochsBumped(),
        ],
    )
    assert image.partition("a", 1) == PartitionImage((2,), (2,), 2, 4, 5)
    assert [partition.leader_epoch for partition in image.topics["b"].partitions] == [1, 1, 1]


def test_a_topic_made_again_has_none_of_the_old_ones_configs() -> None:
    image = apply(MetadataImage(), [TopicCreated(TopicImage("a", b"1" * 16, (P,)), {"x": "y"})])
    image = apply(image, [TopicDeleted("a"), created("a")])
    assert image.config("topic", "a") == {}
    assert image.topic_by_id(b"1" * 16) is None


def test_the_configs_given_are_copied() -> None:
    given_configs = {"x": "y"}
    image = apply(MetadataImage(), [TopicCreated(TopicImage("a", b"1" * 16, (P,)), given_configs)])
    given_configs["x"] = "z"
    assert image.config("topic", "a") == {"x": "y"}


def test_what_a_commit_does_not_touch_is_shared() -> None:
    image = apply(MetadataImage(), [created("a", 100), created("b"), BrokerRegistered(BrokerImage(1, 1, ()))])
    after = apply(image, [PartitionChanged("a", 7, PartitionImage((2,), (2,), 2))])
    assert after.brokers is image.brokers
    assert after.configs is image.configs
    assert after.topic_names is image.topic_names
    assert after.topics["b"] is image.topics["b"]
    assert after.topics["a"].partitions[8] is image.topics["a"].partitions[8]
    assert apply(image, [ConfigsChanged("broker", "", {"a": "b"})]).topics is image.topics


class CountingDict(dict[str, TopicImage]):
    """Counts how often it is copied."""

    copies = 0

    def __iter__(self):
        CountingDict.copies += 1
        return super().__iter__()

    def keys(self):
        CountingDict.copies += 1
        return super().keys()


def test_ten_thousand_changes_copy_the_topics_once() -> None:
    image = apply(MetadataImage(), [created("a", 10_000), *(created(f"t{number}") for number in range(100))])
    counted = MetadataImage(topics=CountingDict(image.topics), topic_names=image.topic_names)
    CountingDict.copies = 0
    other = PartitionImage((2,), (2,), 2)
    after = apply(counted, [PartitionChanged("a", index, other) for index in range(10_000)])
    assert CountingDict.copies == 1
    assert after.topics["a"].partitions == (other,) * 10_000


def test_images_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        MetadataImage().version = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        MetadataImage().topics["a"] = TopicImage("a", b"", ())  # type: ignore[index]
    with pytest.raises(TypeError):
        MetadataImage().config("topic", "a")["x"] = "y"  # type: ignore[index]


def test_an_unknown_change_says_so() -> None:
    with pytest.raises(ValueError, match="unknown change 'Later': written by a newer version of kwire"):
        change_from_json({"change": "Later"})
