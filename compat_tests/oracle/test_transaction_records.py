"""What transactional ids leave in __transaction_state, record by record, at each level of transaction.version."""

from __future__ import annotations

import pytest

from compat_tests.oracle import internal_topics
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from compat_tests.oracle.test_transaction_versions import at_level
from compat_tests.oracle.transactional import (
    BUMPS_FROM,
    add_offsets,
    begin,
    complete,
    end,
    init,
    init_request,
    settle_transactions,
    write,
)
from kwire.metadata.names import TRANSACTION_STATE
from kwire.protocol.coordinator_records.record_types import TRANSACTION_RECORD_TYPES
from kwire.protocol.coordinator_records.transaction_log import TransactionLogKey
from kwire.protocol.schema import Message

pytestmark = pytest.mark.xdist_group("oracle")


def record_what_is_written(side: Side, since: int, *transactional_ids: str) -> None:
    internal_topics.record_what_is_written(
        side, TRANSACTION_STATE, TRANSACTION_RECORD_TYPES, since, _transactional_id, *transactional_ids
    )


def _transactional_id(key: Message) -> str:
    assert isinstance(key, TransactionLogKey)
    return key.transactional_id


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_client_of_the_old_protocol(level: int, both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic, other, name = side.topic(), side.topic("other"), side.name("id")
        since = internal_topics.end(side, TRANSACTION_STATE)
        with at_level(side, level):
            producer = init(side, name)
            for commit in (True, False):
                begin(side, name, producer, (topic, 0))
                begin(side, name, producer, (topic, 0), (other, 0))
                side.ask(add_offsets(name, producer, "group"))
                side.ask(end(name, producer, commit=commit), BUMPS_FROM - 1)
                complete(side, name)
            producer = init(side, name, producer, timeout_ms=30_000)
            begin(side, name, producer, (topic, 0))
            side.ask(init_request(name), note="of another instance")
            complete(side, name)
            init(side, name)
            record_what_is_written(side, since, name)

    both.agree(scenario)


@pytest.mark.parametrize("level", [1, 2])
def test_a_client_of_the_new_protocol(level: int, both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic, other, name = side.topic(), side.topic("other"), side.name("id")
        since = internal_topics.end(side, TRANSACTION_STATE)
        with at_level(side, level):
            producer = init(side, name)
            for commit in (True, False):
                write(side, name, producer, topic, version=12)
                write(side, name, producer, other, version=12)
                side.ask(end(name, producer, commit=commit), BUMPS_FROM)
                complete(side, name)
                producer = producer.after(1)
            side.ask(end(name, producer, commit=False), BUMPS_FROM, note="of nothing")
            complete(side, name)
            producer = init(side, name, producer.after(1))
            write(side, name, producer, topic, version=12)
            side.ask(init_request(name), note="of another instance")
            complete(side, name)
            init(side, name)
            record_what_is_written(side, since, name)

    both.agree(scenario)


def test_a_transaction_that_takes_too_long(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic, name = side.topic(), side.name("id")
        since = internal_topics.end(side, TRANSACTION_STATE)
        producer = init(side, name, timeout_ms=2_000)
        write(side, name, producer, topic, version=12)
        complete(side, name)
        side.ask(end(name, producer, commit=False), BUMPS_FROM, note="late")
        record_what_is_written(side, since, name)

    both.agree(scenario)
