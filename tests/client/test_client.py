"""The cluster: bootstrap, metadata, leaders, retries until a deadline."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kwire.client.client import Client
from kwire.client.errors import AdvertisedAddressUnreachable, BrokerUnreachable, UnsupportedApi
from kwire.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, Isolation, ListedOffset, list_offsets
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kwire.protocol.messages.metadata import MetadataRequest
from tests.client.scripted_broker import ScriptedBroker, metadata


def listed(request: ListOffsetsRequest, error: int = 0) -> ListOffsetsResponse:
    """Answers the timestamp asked for, plus 1000, as the offset."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=item.partition_index, error_code=error, offset=item.timestamp + 1000
                    )
                    for item in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def test_the_first_address_that_answers(network, broker) -> None:
    async with Client(network.transport("here"), [("nobody", 1), ("broker", 9092), ("nobody", 2)]) as client:
        await client.refresh(None)
        assert client.metadata.cluster_id == "cluster"
        assert sorted(client.metadata.topics) == ["t"]


async def test_no_address_answers(network) -> None:
    async with Client(network.transport("here"), [("nobody", 1), ("nowhere", 2)]) as client:
        with pytest.raises(BrokerUnreachable, match=r"nobody:1: Connection refused; nowhere:2: Connection refused"):
            await client.topic("t")


async def test_one_connection_serves_bootstrap_and_leader(client, broker) -> None:
    broker.on(ListOffsetsRequest, listed)
    offsets = await list_offsets(client, {("t", 0): LATEST, ("t", 1): EARLIEST})
    assert offsets == {("t", 0): ListedOffset(999, -1, -1), ("t", 1): ListedOffset(998, -1, -1)}
    assert broker.connections == 1
    assert len(broker.got(ListOffsetsRequest)) == 1


async def test_each_leader_is_asked_for_its_own(network, nursery, client, broker) -> None:
    other = ScriptedBroker(network.transport("other"), "other", 9093)
    await nursery.start(other.run)
    broker.on(MetadataRequest, metadata({"t": [1, 2, 1, 2]}, {1: ("broker", 9092), 2: ("other", 9093)}))
    for each in (broker, other):
        each.on(ListOffsetsRequest, listed)
    offsets = await list_offsets(
        client, {("t", index): index for index in range(4)}, isolation=Isolation.READ_COMMITTED
    )
    assert {partition: answer.offset for partition, answer in offsets.items()} == {
        ("t", index): 1000 + index for index in range(4)
    }
    for each, expected in ((broker, [0, 2]), (other, [1, 3])):
        (request,) = each.got(ListOffsetsRequest)
        assert [item.partition_index for item in request.topics[0].partitions] == expected
        assert request.isolation_level == 1


async def test_a_leader_that_moved_is_found(network, nursery, client, broker, autojump_clock) -> None:
    other = ScriptedBroker(network.transport("other"), "other", 9093)
    await nursery.start(other.run)
    brokers = {1: ("broker", 9092), 2: ("other", 9093)}
    broker.on(MetadataRequest, [metadata({"t": [1]}, brokers), metadata({"t": [2]}, brokers)])
    broker.on(ListOffsetsRequest, lambda request: listed(request, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    other.on(ListOffsetsRequest, listed)
    assert (await list_offsets(client, {("t", 0): 5}))["t", 0].offset == 1005


async def test_only_what_failed_is_asked_again(client, broker, autojump_clock) -> None:
    def first(request: ListOffsetsRequest) -> ListOffsetsResponse:
        response = listed(request)
        response.topics[0].partitions[1].error_code = ErrorCode.LEADER_NOT_AVAILABLE
        return response

    broker.on(ListOffsetsRequest, [first, listed])
    offsets = await list_offsets(client, {("t", 0): 0, ("t", 1): 1})
    assert [offsets["t", index].offset for index in range(2)] == [1000, 1001]
    asked = [
        [item.partition_index for item in request.topics[0].partitions] for request in broker.got(ListOffsetsRequest)
    ]
    assert asked == [[0, 1], [1]]


async def test_a_partition_left_out_of_the_response_is_an_error(client, broker) -> None:
    broker.on(ListOffsetsRequest, ListOffsetsResponse())
    with pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR: the broker's response leaves t-0 out"):
        await list_offsets(client, {("t", 0): 0})


async def test_a_mute_broker_holds_up_no_other(network, nursery, client, broker, autojump_clock) -> None:
    brokers = {1: ("broker", 9092), 2: ("mute", 9093)}
    broker.on(MetadataRequest, metadata({"t": [1, 2]}, brokers))
    network.cut("here", "mute")
    await client.refresh(None)
    nursery.start_soon(client.connection, 2)
    await trio.testing.wait_all_tasks_blocked()
    await client.connection(1)
    assert trio.current_time() == 0
    nursery.cancel_scope.cancel()


async def test_a_passing_error_that_does_not_pass_ends_at_the_deadline(client, broker, autojump_clock) -> None:
    broker.on(ListOffsetsRequest, lambda request: listed(request, ErrorCode.LEADER_NOT_AVAILABLE))
    with pytest.raises(KafkaError, match="LEADER_NOT_AVAILABLE: t-0"):
        await list_offsets(client, {("t", 0): 0})
    assert 55 < trio.current_time() <= 60
    assert 50 < len(broker.got(ListOffsetsRequest)) < 80


async def test_an_error_for_good_is_not_retried(client, broker) -> None:
    broker.on(ListOffsetsRequest, lambda request: listed(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        await list_offsets(client, {("t", 0): 0})
    assert len(broker.got(ListOffsetsRequest)) == 1


async def test_a_lost_connection_is_opened_again(client, broker, autojump_clock) -> None:
    broker.on(ListOffsetsRequest, listed)
    await client.topic("t")
    broker.drop_next = True
    assert (await list_offsets(client, {("t", 0): 0}))["t", 0].offset == 1000
    assert broker.connections == 2


async def test_a_broker_that_restarts_is_waited_for(network, client, autojump_clock) -> None:
    broker = ScriptedBroker(network.transport("broker"))
    broker.on(MetadataRequest, metadata({"t": [1]}))
    broker.on(ListOffsetsRequest, listed)
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        await list_offsets(client, {("t", 0): 0})
        nursery.cancel_scope.cancel()
    async with trio.open_nursery() as nursery:

        async def come_back() -> None:
            await trio.sleep(20)
            await broker.run()

        nursery.start_soon(come_back)
        assert (await list_offsets(client, {("t", 0): 0}))["t", 0].offset == 1000
        assert 20 <= trio.current_time() < 22
        nursery.cancel_scope.cancel()


async def test_an_unknown_topic_is_an_error_after_a_moment(client, broker, autojump_clock) -> None:
    broker.on(MetadataRequest, metadata({"x": []}, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION: topic 'x'"):
        await client.topic("x")
    assert trio.current_time() < 1
    assert not any(request.allow_auto_topic_creation for request in broker.got(MetadataRequest))


async def test_a_topic_the_broker_creates_is_waited_for(client, broker, autojump_clock) -> None:
    missing = metadata({"x": []}, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = metadata({"x": [1, 1, 1]})
    broker.on(
        MetadataRequest,
        lambda request: present if trio.current_time() > 2 else missing if request.topics else metadata({}),
    )
    assert len((await client.topic("x", create=True)).partitions) == 3
    assert all(request.allow_auto_topic_creation for request in broker.got(MetadataRequest) if request.topics)


async def test_an_unknown_partition(client, broker) -> None:
    broker.on(ListOffsetsRequest, listed)
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION: partition 7 of topic 't'"):
        await list_offsets(client, {("t", 7): 0, ("t", 0): 0})


async def test_partitions_added_since_are_found(client, broker) -> None:
    broker.on(MetadataRequest, [metadata({"t": [1]}), metadata({"t": [1, 1]})])
    broker.on(ListOffsetsRequest, listed)
    await client.topic("t")
    assert (await list_offsets(client, {("t", 1): 1}))["t", 1].offset == 1001


async def test_an_advertised_address_that_leads_nowhere(client, broker, autojump_clock) -> None:
    broker.on(MetadataRequest, metadata({"t": [1]}, {1: ("wrong", 9092)}))
    with pytest.raises(AdvertisedAddressUnreachable, match=r"advertises broker 1 at wrong:9092.*advertised\.listeners"):
        await list_offsets(client, {("t", 0): 0})
    assert trio.current_time() < 6


async def test_what_an_old_broker_cannot_say(client, broker) -> None:
    broker.on(ListOffsetsRequest, listed, versions=(1, 6))
    with pytest.raises(UnsupportedApi, match="ListOffsets version 7"):
        await list_offsets(client, {("t", 0): MAX_TIMESTAMP})


async def test_all_topics_of_the_oldest_broker(client, broker) -> None:
    """In version 0 an empty list means all; nothing can be said about creating topics."""
    broker.on(MetadataRequest, metadata({"t": [1]}, topic_id=bytes(16)), versions=(0, 0))
    await client.refresh(None)
    assert broker.got(MetadataRequest)[0].topics == []
