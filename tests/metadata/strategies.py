"""Random metadata: changes that fit the image they are made for."""

from __future__ import annotations

from hypothesis import strategies as st

from kwire.metadata.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    Change,
    ConfigsChanged,
    ControllerChanged,
    FeatureLevelsChanged,
    LeaderEpochsBumped,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
)
from kwire.metadata.features import FEATURES
from kwire.metadata.image import BrokerImage, Endpoint, MetadataImage, PartitionImage, TopicImage

ids = st.integers(0, 5)
epochs = st.integers(0, 2**31 - 1)
texts = st.text(max_size=6)
uuids = st.binary(min_size=16, max_size=16)
configs = st.dictionaries(texts, texts, max_size=3)

feature_levels = st.fixed_dictionaries(
    {}, optional={name: st.integers(feature.least, feature.greatest) for name, feature in FEATURES.items()}
)

partitions = st.builds(
    PartitionImage,
    replicas=st.lists(ids, min_size=1, max_size=3, unique=True).map(tuple),
    isr=st.lists(ids, max_size=3, unique=True).map(tuple),
    leader=st.integers(-1, 5),
    leader_epoch=epochs,
    partition_epoch=epochs,
    directories=st.lists(uuids, max_size=3).map(tuple),
)
partition_lists = st.lists(partitions, min_size=1, max_size=4).map(tuple)
endpoints = st.builds(Endpoint, texts, texts, st.integers(0, 65535), st.sampled_from(["PLAINTEXT", "SASL_SSL"]))
brokers = st.builds(
    BrokerImage,
    id=ids,
    epoch=epochs,
    endpoints=st.lists(endpoints, max_size=2).map(tuple),
    rack=st.none() | texts,
    fenced=st.booleans(),
)


@st.composite
def changes(draw: st.DrawFn, image: MetadataImage) -> Change:
    """A change that `apply` takes for this image."""
    options: list[st.SearchStrategy[Change]] = [
        st.builds(BrokerRegistered, brokers),
        st.builds(ConfigsChanged, st.sampled_from(["topic", "broker"]), texts, configs, st.lists(texts).map(tuple)),
        st.builds(ProducerIdsReserved, st.integers(image.next_producer_id, 2**63 - 1)),
        st.builds(ControllerChanged, ids),
        st.builds(FeatureLevelsChanged, feature_levels),
        st.just(LeaderEpochsBumped()),
        st.builds(
            TopicCreated,
            st.builds(
                TopicImage,
                texts.filter(lambda name: name not in image.topics),
                uuids.filter(lambda topic_id: topic_id not in image.topic_names),
                partition_lists,
            ),
            configs,
        ),
    ]
    if image.brokers:
        options.append(st.builds(BrokerUnregistered, st.sampled_from(sorted(image.brokers))))
    if image.topics:
        name = draw(st.sampled_from(sorted(image.topics)))
        index = st.integers(0, len(image.topics[name].partitions) - 1)
        options += [
            st.just(TopicDeleted(name)),
            st.builds(PartitionsAdded, st.just(name), partition_lists),
            st.builds(PartitionChanged, st.just(name), index, partitions),
        ]
    return draw(st.one_of(options))
