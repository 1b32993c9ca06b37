"""Transactions of a cluster whose feature transaction.version is lower than it could be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from compat_tests.oracle.asking import fetch
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from compat_tests.oracle.transactional import (
    Producer,
    add,
    begin,
    complete,
    described,
    end,
    init,
    init_request,
    of_a_broker,
    settle_transactions,
    write,
)
from kwire.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kwire.protocol.messages.api_versions import ApiVersionsRequest
from kwire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

pytestmark = pytest.mark.xdist_group("oracle")

FEATURE = "transaction.version"
NEWEST = 2
UPGRADE, SAFE_DOWNGRADE = 1, 2
READ_COMMITTED = 1


def set_level(side: Side, level: int) -> None:
    """Returns when the broker works at that level."""
    key = FeatureUpdateKey(
        feature=FEATURE, max_version_level=level, upgrade_type=UPGRADE if level == NEWEST else SAFE_DOWNGRADE
    )
    response = side.call(UpdateFeaturesRequest(feature_updates=[key]))
    assert not response.error_code, response
    request = ApiVersionsRequest(client_software_name="oracle", client_software_version="1")
    side.call(
        request,
        until=lambda answer: (
            next((each.max_version_level for each in answer.finalized_features if each.name == FEATURE), 0) == level
        ),
    )


@contextmanager
def at_level(side: Side, level: int) -> Iterator[None]:
    set_level(side, level)
    try:
        yield
    finally:
        set_level(side, NEWEST)


@pytest.mark.parametrize("level", [0, 1])
def test_clients_of_the_old_protocol(level: int, both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic, name = side.topic(), side.name()
        with at_level(side, level):
            producer = init(side, name)
            for sequence, commit in enumerate((True, False, True)):
                begin(side, name, producer, (topic, 0))
                write(side, name, producer, topic, sequence)
                side.ask(end(name, producer, commit=commit), 4)
                complete(side, name)
                described(side, name)
            begin(side, name, producer, (topic, 0))
            write(side, name, producer, topic, 3)
            side.ask(init_request(name), note="while one is open")
            second = init(side, name)
            side.record("epochs", second.epoch - producer.epoch)
            for version in range(5):
                side.ask(end(name, producer), version, note="of the first")
            side.ask(init_request(name, producer), note="the first goes on")
            side.ask(init_request(name, second), note="the second goes on")
            side.ask(init_request(name, second), note="again")
            described(side, name)
        side.ask(fetch(side, topic, isolation_level=READ_COMMITTED))

    both.agree(scenario)


@pytest.mark.parametrize("level", [0, 1])
def test_what_takes_too_long(level: int, both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic, name = side.topic(), side.name()
        with at_level(side, level):
            producer = init(side, name, timeout_ms=2_000)
            begin(side, name, producer, (topic, 0))
            write(side, name, producer, topic)
            complete(side, name)
            described(side, name)
            for version in range(5):
                for commit in (True, False):
                    side.ask(end(name, producer, commit=commit), version, note=f"late, {commit=}")
            side.ask(add(name, producer, (topic, 0)), 3, note="late")
            write(side, name, producer, topic, 1, note="late")
            side.ask(init_request(name, producer), note="goes on")
            side.ask(init_request(name))
            described(side, name)

    both.agree(scenario)


def test_clients_of_the_new_protocol_at_level_1(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic, name = side.topic(partitions=2), side.name()
        with at_level(side, 1):
            producer = init(side, name)
            write(side, name, producer, topic, version=12, note="implicitly added")
            described(side, name)
            asked = [of_a_broker(name, producer, (topic, 1))]
            side.ask(AddPartitionsToTxnRequest(transactions=asked), note="added by a broker")
            response = side.ask(end(name, producer), 5)
            complete(side, name)
            described(side, name)
            after = Producer(response.producer_id, response.producer_epoch)
            side.record("epochs", after.epoch - producer.epoch)
            write(side, name, after, topic, version=12, note="the next")
            side.ask(end(name, after, commit=False), 5)
            complete(side, name)
            described(side, name)

    both.agree(scenario)


def test_an_open_transaction_is_ended_at_another_level(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic, old, new = side.topic(), side.name("old"), side.name("new")
        with at_level(side, 1):
            producer = init(side, old)
            begin(side, old, producer, (topic, 0))
        side.ask(end(old, producer), 5, note="begun at 1, ended at 2")
        complete(side, old)
        described(side, old)
        producer = init(side, new)
        write(side, new, producer, topic, version=12)
        with at_level(side, 1):
            side.ask(init_request(new), note="begun at 2, fenced at 1")
            complete(side, new)
            described(side, new)
            again = init(side, new)
            side.record("epochs", again.epoch - producer.epoch)

    both.agree(scenario)


def test_clients_of_the_new_protocol_at_level_0(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic = side.topic()
        adds, ends, writes = side.name("adds"), side.name("ends"), side.name("writes")
        with at_level(side, 0):
            first, second, third = init(side, adds), init(side, ends), init(side, writes)
            asked = [of_a_broker(adds, first, (topic, 0))]
            side.ask(AddPartitionsToTxnRequest(transactions=asked), note="added by a broker")
            begin(side, ends, second, (topic, 0))
            side.ask(end(ends, second), 5)
            write(side, writes, third, topic, version=12, note="implicitly added")
            described(side, adds, ends, writes)

    both.agree(scenario)
