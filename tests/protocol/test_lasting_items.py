"""Items whose bytes are kept are encoded like any others, in every version, and made only once for each."""

from __future__ import annotations

import pytest

from kwire.protocol import codec
from kwire.protocol.codec.errors import EncodeError
from kwire.protocol.codec.lasting import LastingItems
from kwire.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

VERSIONS = range(MetadataResponse.min_version, MetadataResponse.max_version + 1)


def partitions(count: int) -> list[MetadataResponsePartition]:
    return [
        MetadataResponsePartition(
            partition_index=index,
            leader_id=index % 3,
            replica_nodes=[0, 1, 2],
            isr_nodes=[index % 3],
            offline_replicas=[2] * (index % 2),
        )
        for index in range(count)
    ]


def response(*topics: object) -> MetadataResponse:
    """With the partitions of each topic between what comes before and behind them."""
    return MetadataResponse(
        cluster_id="cluster",
        topics=[MetadataResponseTopic(name=f"topic {at}", partitions=each) for at, each in enumerate(topics)],
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 1, 127, 128, 300])
def test_the_bytes_are_those_of_a_list(version: int, count: int) -> None:
    expected = codec.encode(response(partitions(count), partitions(2)), version)
    lasting = LastingItems(count, lambda: partitions(count))
    for _ in range(3):
        assert codec.encode(response(lasting, partitions(2)), version) == expected
    assert codec.encode(response(partitions(2), lasting), version) == codec.encode(
        response(partitions(2), partitions(count)), version
    )


def test_the_items_are_made_once_for_each_version() -> None:
    made = []

    def make() -> list[MetadataResponsePartition]:
        made.append(1)
        return partitions(5)

    lasting = LastingItems(5, make)
    for version in (1, 12, 1, 12, 13):
        assert codec.encode(response(lasting), version) == codec.encode(response(partitions(5)), version)
    assert len(made) == 3


def test_nothing_is_kept_of_an_encoding_that_failed() -> None:
    items = partitions(2)
    items[1].leader_id = 2**40
    lasting = LastingItems(2, lambda: items)
    with pytest.raises(EncodeError):
        codec.encode(response(lasting), 12)
    items[1].leader_id = 4
    assert codec.encode(response(lasting), 12) == codec.encode(response(items), 12)
