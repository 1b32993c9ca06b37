"""Transactions: who may begin, add and end, in all versions, and what is left of it in the partitions."""

from __future__ import annotations

import pytest

from compat_tests.oracle.asking import fetch, list_offsets
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from compat_tests.oracle.transactional import (
    BUMPS_FROM,
    Producer,
    add,
    add_offsets,
    begin,
    complete,
    described,
    end,
    init,
    init_request,
    markers,
    of_a_broker,
    settle_transactions,
    write,
    write_markers,
)
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kwire.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kwire.protocol.messages.list_transactions import ListTransactionsRequest

pytestmark = pytest.mark.xdist_group("oracle")

LATEST, READ_COMMITTED = -1, 1


def test_producers_come_one_after_the_other(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        for version in range(6):
            name = side.name(f"v{version}")
            for _ in range(3):
                side.ask(init_request(name), version)
            described(side, name)

    both.agree(scenario)


def test_what_is_asked_for_is_checked(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        for version in range(6):
            for name in ("", side.name()):
                for timeout in (-1, 0, 1, 900_000, 900_001, 2**31 - 1):
                    side.ask(init_request(name, timeout_ms=timeout), version, note=f"{timeout} ms")
        for producer in (Producer(7, -1), Producer(-1, 0), Producer(-2, -2), Producer(2**62, 0)):
            side.ask(init_request(side.name("given"), producer), note=f"{producer}")

    both.agree(scenario)


def test_producers_go_on(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        for version in (3, 4, 5):
            name = side.name(f"v{version}")
            first = init(side, name)
            for note, expected in (
                ("the first", first),
                ("again", first),
                ("the second", first.after(1)),
                ("the first, late", first),
                ("one to come", first.after(7)),
                ("another id", Producer(first.id + 1000, 0)),
                ("another id, no epochs left", Producer(first.id + 1000, 32766)),
            ):
                side.ask(init_request(name, expected), version, note=note)
            init(side, name)
            side.ask(init_request(name, first.after(1)), version, note="another instance came")
            described(side, name)

    both.agree(scenario)


def test_another_instance_comes(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic = side.topic()
        for version in range(6):
            name = side.name(f"v{version}")
            first = init(side, name)
            begin(side, name, first, (topic, 0))
            side.ask(init_request(name), version, note="while one is open")
            second = init(side, name)
            side.record("epochs", second.epoch - first.epoch)
            described(side, name)
            for end_version in range(6):
                for commit in (True, False):
                    side.ask(end(name, first, commit=commit), end_version, note=f"the first, {commit=}")
            for add_version in range(4):
                side.ask(add(name, first, (topic, 0)), add_version, note="the first")
            for offsets_version in range(5):
                side.ask(add_offsets(name, first, "group"), offsets_version, note="the first")
            side.ask(init_request(name, first), note="the first goes on")

    both.agree(scenario)


def test_adding_partitions(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic, another = side.topic(partitions=2), side.topic("another")
        for version in range(4):
            name = side.name(f"v{version}")
            producer = init(side, name)
            for note, transactional_id, who, partitions in (
                ("no such partition", name, producer, [(topic, 0), (topic, 2), (side.name("absent"), 0)]),
                ("internal", name, producer, [("__consumer_offsets", 0)]),
                ("no transactional id", "", producer, [(topic, 0)]),
                ("another transactional id", side.name("other"), producer, [(topic, 0)]),
                ("another producer", name, Producer(producer.id + 1000, 0), [(topic, 0)]),
                ("another epoch", name, producer.after(1), [(topic, 0)]),
                ("nothing", name, producer, []),
                ("two", name, producer, [(topic, 0), (another, 0)]),
                ("one more", name, producer, [(topic, 1)]),
                ("known", name, producer, [(topic, 1)]),
            ):
                side.ask(add(transactional_id, who, *partitions), version, note=note)
                described(side, name, note=note)

    both.agree(scenario)


def test_brokers_add_and_verify(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic = side.topic(partitions=2)
        for version in (4, 5):
            one, two = side.name(f"one-{version}"), side.name(f"two-{version}")
            first, second = init(side, one), init(side, two)
            asked = [
                of_a_broker(one, first, (topic, 0)),
                of_a_broker(two, second.after(1), (topic, 0)),
                of_a_broker(side.name("unknown"), first, (topic, 0)),
                of_a_broker("", first, (topic, 0)),
            ]
            side.ask(AddPartitionsToTxnRequest(transactions=asked), version, note="added")
            looked = [
                of_a_broker(one, first, (topic, 0), (topic, 1), verify_only=True),
                of_a_broker(two, second, (topic, 0), verify_only=True),
                of_a_broker(side.name("unknown"), first, (topic, 0), verify_only=True),
                of_a_broker("", first, (topic, 0), verify_only=True),
            ]
            side.ask(AddPartitionsToTxnRequest(transactions=looked), version, note="verified")
            for transaction in (
                of_a_broker(one, first.after(1), (topic, 0), verify_only=True),
                of_a_broker(one, Producer(first.id + 1000, 0), (topic, 0), verify_only=True),
                of_a_broker(one, first, (topic, 7), verify_only=True),
                of_a_broker(one, first, ("__consumer_offsets", 7)),
                of_a_broker(one, first, ("__transaction_state", 0)),
            ):
                side.ask(AddPartitionsToTxnRequest(transactions=[transaction]), version)
            described(side, one, two)

    both.agree(scenario)


def test_adding_offsets(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        for version in range(5):
            name = side.name(f"v{version}")
            producer = init(side, name)
            for note, transactional_id, who, group in (
                ("no transactional id", "", producer, "group"),
                ("another transactional id", side.name("other"), producer, "group"),
                ("another producer", name, Producer(producer.id + 1000, 0), "group"),
                ("another epoch", name, producer.after(1), "group"),
                ("no group", name, producer, ""),
                ("a group", name, producer, "group"),
                ("again", name, producer, "group"),
            ):
                side.ask(add_offsets(transactional_id, who, group), version, note=note)
                described(side, name, note=note)

    both.agree(scenario)


@pytest.mark.parametrize("version", range(6))
def test_ending(version: int, both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic = side.topic(partitions=2)
        for commit in (True, False):
            name = side.name(f"{commit}")
            producer = init(side, name)
            side.ask(end("", producer), version, note="no transactional id")
            side.ask(end(side.name("other"), producer), version, note="another transactional id")
            side.ask(end(name, Producer(producer.id + 1000, 0)), version, note="another producer")
            side.ask(end(name, producer.after(1)), version, note="another epoch")
            side.ask(end(name, producer), version, note="nothing to commit")
            begin(side, name, producer, (topic, 0), (topic, 1))
            write(side, name, producer, topic, count=2)
            side.ask(end(name, producer.after(1)), version, note="another epoch while it is open")
            side.ask(end(name, producer, commit=commit), version, note=f"{commit=}")
            complete(side, name)
            described(side, name)
            now = producer.after(1) if version >= BUMPS_FROM else producer
            side.ask(end(name, producer, commit=commit), version, note="the same again")
            side.ask(end(name, producer, commit=not commit), version, note="the other again")
            side.ask(end(name, now.after(1), commit=commit), version, note="an epoch to come")
            side.ask(end(name, now, commit=True), version, note="a commit of nothing")
        for partition in (0, 1):
            for isolation in (0, READ_COMMITTED):
                side.ask(fetch(side, topic, partition=partition, isolation_level=isolation), note=f"{isolation=}")
                side.ask(list_offsets(topic, LATEST, partition=partition, isolation_level=isolation))

    both.agree(scenario)


def test_clients_of_version_2_abort_what_has_not_begun(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        name = side.name()
        producer = init(side, name)
        side.ask(end(name, producer.after(-1), commit=False), note="before there was any")
        for _ in range(3):
            side.ask(end(name, producer, commit=False))
            complete(side, name)
            described(side, name)
            side.ask(end(name, producer, commit=False), note="again")
            side.ask(end(name, producer, commit=True), note="otherwise")
            producer = producer.after(1)

    both.agree(scenario)


def test_what_is_open_holds_readers_back(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic = side.topic()
        first, second = init(side, side.name("first")), init(side, side.name("second"))
        begin(side, side.name("first"), first, (topic, 0))
        begin(side, side.name("second"), second, (topic, 0))
        for sequence in range(2):
            write(side, side.name("first"), first, topic, sequence, note="first")
            write(side, side.name("second"), second, topic, sequence, note="second")

        def look(note: str) -> None:
            side.ask(fetch(side, topic, isolation_level=READ_COMMITTED), note=note)
            side.ask(list_offsets(topic, LATEST, isolation_level=READ_COMMITTED), note=note)
            side.ask(DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])]), note=note)

        look("both open")
        side.ask(end(side.name("second"), second, commit=False))
        complete(side, side.name("second"))
        look("the second aborted")
        side.ask(end(side.name("first"), first))
        complete(side, side.name("first"))
        look("the first committed")
        write(side, side.name("first"), first, topic, 2, note="late, of the old epoch")

    both.agree(scenario)


def test_what_takes_too_long_is_aborted(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic, name = side.topic(), side.name()
        producer = init(side, name, timeout_ms=2_000)
        begin(side, name, producer, (topic, 0))
        write(side, name, producer, topic)
        complete(side, name)
        described(side, name)
        side.ask(add(name, producer, (topic, 0)), 3)
        write(side, name, producer, topic, 1, note="late")
        for version in range(6):
            for commit in (True, False):
                side.ask(end(name, producer, commit=commit), version, note=f"late, {commit=}")
        side.ask(init_request(name, producer), note="goes on")
        side.ask(fetch(side, topic, isolation_level=READ_COMMITTED))

    both.agree(scenario)


def test_listing_and_describing(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic = side.topic()
        names = [side.name(word) for word in ("empty", "open", "committed")]
        producers = [init(side, name) for name in names]
        for name, producer in zip(names[1:], producers[1:], strict=True):
            begin(side, name, producer, (topic, 0))
        side.call(end(names[2], producers[2]))
        complete(side, names[2])
        described(side, *names, "", side.name("absent"))
        ids = [producer.id for producer in producers]
        for version in range(3):
            for filters in (
                {},
                {"state_filters": ["Ongoing"]},
                {"state_filters": ["Ongoing", "nonsense"]},
                {"state_filters": ["nonsense", "ongoing", "nonsense"]},
                {"state_filters": ["Dead", "PrepareEpochFence"]},
                {"state_filters": [""]},
            ):
                side.ask(ListTransactionsRequest(producer_id_filters=ids, **filters), version, note=f"{filters}")
            side.ask(ListTransactionsRequest(producer_id_filters=ids[:1]), version, note="one producer")
            side.ask(ListTransactionsRequest(producer_id_filters=[2**62]), version, note="no producer")
        for version in (1, 2):
            for duration in (-2, 0, 3_600_000):
                request = ListTransactionsRequest(producer_id_filters=ids, duration_filter=duration)
                side.ask(request, version, note=f"{duration} ms")
        prefix = side.name("")
        for pattern in (f"{prefix}.*", f"{prefix}open", f"{prefix}(open|empty)", prefix, "", "(", "(?=a)", "a{2,1}"):
            request = ListTransactionsRequest(producer_id_filters=ids, transactional_id_pattern=pattern)
            side.ask(request, note=f"like {pattern!r}")

    both.agree(scenario)


def test_markers_of_admins(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic, name = side.topic(partitions=2), side.name()
        init(side, name)
        producer = init(side, name)
        for version in (1, 2):
            write_markers(side, version=version, note="nothing")
            begin(side, name, producer, (topic, 0))
            write(side, name, producer, topic, version - 1)
            write_markers(side, markers(producer.after(-1), (topic, 0)), version=version, note="an older epoch")
            absent = markers(producer, (topic, 1), (topic, 2), (side.name("absent"), 0), commit=True)
            write_markers(side, absent, version=version, note="absent")
            for coordinator_epoch in (0, 5, 4):
                for commit in (False, True):
                    marker = markers(producer, (topic, 0), coordinator_epoch=coordinator_epoch, commit=commit)
                    write_markers(side, marker, version=version, note=f"{coordinator_epoch=} {commit=}")
        stranger = Producer(producer.id + 1000, 3)
        for transaction_version in (0, 1, 2):
            for marker_of in (stranger, stranger, stranger.after(1), stranger):
                marker = markers(marker_of, (topic, 1), transaction_version=transaction_version)
                write_markers(side, marker, note=f"{transaction_version=}")
        write_markers(side, markers(stranger, (topic, 1)), markers(stranger.after(1), (topic, 1)), note="two")
        for nobody in (stranger._replace(epoch=-1), Producer(-1, 0), Producer(-1, -1)):
            for place in ((topic, 0), (side.name("absent"), 0)):
                write_markers(side, markers(nobody, place), note=f"of nobody, {place[0] == topic=}")
        write_markers(side, markers(stranger), note="for no partition")
        for partition in (0, 1):
            side.ask(fetch(side, topic, partition=partition, isolation_level=READ_COMMITTED))

    both.agree(scenario)


@pytest.mark.parametrize("version", [3, 8, 10, 11, 12, 13])
def test_records_of_what_was_not_begun(version: int, both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic, name = side.topic(partitions=2), side.name()
        producer = init(side, name)
        write(side, name, producer, topic, version=version, note="not added")
        write(side, side.name("other"), producer, topic, version=version, note="another transactional id")
        write(side, name, producer.after(1), topic, version=version, note="an epoch to come")
        described(side, name)
        response = side.call(end(name, producer, commit=False))
        if response.error_code == ErrorCode.NONE:
            complete(side, name)
        described(side, name)
        write(side, name, producer, topic, 1, version=version, partition=1, note="of an epoch that is over")

    both.agree(scenario)
