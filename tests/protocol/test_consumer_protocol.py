"""Subscriptions and assignments of consumers, those in captured frames above all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwire.protocol import codec, headers
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.consumer_protocol.assignment import ConsumerProtocolAssignment, TopicPartition
from kwire.protocol.consumer_protocol.serde import decode, subscribed_topics
from kwire.protocol.consumer_protocol.subscription import ConsumerProtocolSubscription
from kwire.protocol.messages.join_group import JoinGroupRequest
from kwire.protocol.messages.sync_group import SyncGroupResponse
from kwire.protocol.types import Buffer
from kwire.protocol.version_prefixed import encode_version_prefixed, read_prefix
from tests.protocol.captured import EXCHANGES


def _subscriptions() -> Iterator[Buffer]:
    for exchange in EXCHANGES:
        if exchange.api_key == ApiKey.JOIN_GROUP:
            _, start = headers.decode_request_header(exchange.request)
            request = codec.decode(JoinGroupRequest, exchange.version, exchange.request, start)
            if request.protocol_type == "consumer":
                yield from [protocol.metadata for protocol in request.protocols]


def _assignments() -> Iterator[Buffer]:
    for exchange in EXCHANGES:
        if exchange.api_key == ApiKey.SYNC_GROUP:
            _, start = headers.decode_response_header(ApiKey.SYNC_GROUP, exchange.version, exchange.response)
            response = codec.decode(SyncGroupResponse, exchange.version, exchange.response, start)
            # Before version 5 the answer names no type: those clients are consumers, too.
            if response.protocol_type in ("consumer", None):
                yield response.assignment


def test_what_stock_consumers_subscribe_to_is_read_and_written_back() -> None:
    versions = set()
    for metadata in _subscriptions():
        subscription = decode(ConsumerProtocolSubscription, metadata)
        assert subscription.topics
        versions.add(version := read_prefix(metadata))
        assert encode_version_prefixed(subscription, version) == metadata
    assert versions >= {0, 1, 3}


def test_what_stock_consumers_are_assigned_is_read_and_written_back() -> None:
    assignments = list(_assignments())
    assert assignments
    for encoded in assignments:
        assignment = decode(ConsumerProtocolAssignment, encoded)
        assert encode_version_prefixed(assignment, read_prefix(encoded)) == encoded


def test_a_later_version_is_read_as_the_newest() -> None:
    sent = ConsumerProtocolSubscription(topics=["a", "b"], generation_id=4, rack_id="r", user_data=b"u")
    encoded = encode_version_prefixed(sent, 3)
    assert decode(ConsumerProtocolSubscription, b"\0\7" + encoded[2:] + b"what later versions add") == sent


def test_what_an_older_version_lacks_is_dropped() -> None:
    sent = ConsumerProtocolSubscription(topics=["a"], generation_id=4, rack_id="r")
    for version in (0, 1):
        encoded = encode_version_prefixed(sent, version)
        assert decode(ConsumerProtocolSubscription, encoded) == ConsumerProtocolSubscription(topics=["a"])


def test_what_is_neither_is_refused() -> None:
    with pytest.raises(codec.UnsupportedVersionError):
        decode(ConsumerProtocolSubscription, b"\xff\xff" + bytes(20))
    encoded = encode_version_prefixed(
        ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic="t", partitions=[1])]), 1
    )
    for length in range(len(encoded)):
        with pytest.raises(codec.MalformedError):
            decode(ConsumerProtocolAssignment, encoded[:length])


@pytest.mark.parametrize("version", range(4))
def test_topics_are_read_whatever_follows_them(version: int) -> None:
    encoded = encode_version_prefixed(ConsumerProtocolSubscription(topics=["a", "b"]), version)
    assert subscribed_topics(encoded) == ["a", "b"]
    first = encode_version_prefixed(ConsumerProtocolSubscription(topics=["a"]), 0)
    assert subscribed_topics((99).to_bytes(2) + first[2:] + b"of the future") == ["a"]


def test_topics_of_no_version_that_can_be() -> None:
    with pytest.raises(codec.UnsupportedVersionError):
        subscribed_topics(b"\xff\xff\0\0\0\0\xff\xff\xff\xff")
