"""Fetch sessions (KIP-227): full and incremental fetches, ids and epochs, what changes and what is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.oracle.asking import FETCH_BY_ID, batch, delete_records, fetch_all, fill
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, ForgottenTopic
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

pytestmark = pytest.mark.xdist_group("oracle")

VERSIONS = (7, 12, 13, 18)
NEW, LAST = 0, -1


def at(topic: str, *offsets: int, first: int = 0, **options: Any) -> list[tuple[str, FetchPartition]]:
    """The topic's partitions from `first` on, each from its offset."""
    return [
        (topic, FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=10_000, **options))
        for index, offset in enumerate(offsets, first)
    ]


def forgotten(side: Side, version: int, topic: str, *partitions: int) -> ForgottenTopic:
    named = {"topic_id": side.id_of(topic)} if version >= FETCH_BY_ID else {"topic": topic}
    return ForgottenTopic(**named, partitions=list(partitions))


class Session:
    """A client's fetch session on one side."""

    def __init__(self, side: Side, version: int) -> None:
        self.side = side
        self.version = version
        self.id = 0
        self.epoch = NEW

    def fetch(self, asked: list[tuple[str, FetchPartition]], note: str, **options: Any) -> None:
        """The next fetch of the session, the first one opens it."""
        defaults = {"session_id": self.id, "session_epoch": self.epoch}
        request = fetch_all(self.side, asked, self.version, **(defaults | options))
        response = self.side.ask(request, self.version, note=note)
        if not response.error_code:
            self.id = response.session_id
            self.epoch += 1


@pytest.mark.parametrize("version", VERSIONS)
def test_incremental_answers(both: Both, version: int) -> None:
    def scenario(side: Side) -> None:
        topic, other = side.topic("one", partitions=3), side.topic("two")
        fill(side, topic, batch(2), partition=0)
        fill(side, topic, batch(2), partition=1)
        session = Session(side, version)
        session.fetch(at(topic, 0, 0, 0), "all three")
        session.fetch([], "the same offsets again")
        session.fetch(at(topic, 2, 2), "after the records of two")
        session.fetch([], "nothing new")
        fill(side, topic, batch(1), partition=1)
        session.fetch([], "one record more")
        session.fetch(at(topic, 3, first=1), "after it")
        side.ask(delete_records(topic, 1), note="the first record")
        session.fetch([], "another start")
        session.fetch(at(other, 0), "a second topic")
        session.fetch([], "nothing new")
        fill(side, other, batch(1))
        fill(side, topic, batch(1), partition=2)
        session.fetch([], "records in both")
        session.fetch([], "a partition less", forgotten_topics_data=[forgotten(side, version, topic, 2)])
        session.fetch(
            [],
            "and both topics",
            forgotten_topics_data=[
                forgotten(side, version, topic, 0, 1, 2, 5),
                forgotten(side, version, other, 0),
            ],
        )
        session.fetch([], "an empty session")
        session.fetch(at(topic, 0, 0), "begun anew")
        session.fetch(
            [], "with a forgotten and an asked one", forgotten_topics_data=[forgotten(side, version, topic, 0)]
        )

    both.agree(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_errors_in_a_session(both: Both, version: int) -> None:
    def scenario(side: Side) -> None:
        topic, absent = side.topic(), side.name("absent")
        fill(side, topic, batch(2))
        session = Session(side, version)
        session.fetch([*at(topic, 9, 0), *at(absent, 0)], "out of range, unknown partition, unknown topic")
        session.fetch([], "again")
        session.fetch(at(topic, 2), "in range")
        session.fetch([], "again")
        session.fetch(at(topic, 9), "out of range")
        session.fetch(at(topic, 0, current_leader_epoch=7), "a newer leader epoch")
        session.fetch(at(topic, 0), "without an epoch")
        session.fetch(
            [],
            "two forgotten",
            forgotten_topics_data=[forgotten(side, version, topic, 1), forgotten(side, version, absent, 0)],
        )
        session.fetch([], "again")

    both.agree(scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_ids_and_epochs(both: Both, version: int) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(2))

        def ask(session_id: int, epoch: int, note: str, asked: list[tuple[str, FetchPartition]] | None = None) -> Any:
            request = fetch_all(
                side, at(topic, 0) if asked is None else asked, version, session_id=session_id, session_epoch=epoch
            )
            return side.ask(request, version, note=note)

        ask(0, LAST, "no session")
        ask(0, 5, "an epoch without a session")
        ask(0, 5, "an epoch without a session or partitions", [])
        ask(123456, 1, "an id that nobody has")
        ask(123456, LAST, "an id that nobody has, its end")
        ask(123456, NEW, "an id that nobody has, anew")
        ask(-5, 1, "a negative id")
        first = ask(0, NEW, "a new one").session_id
        ask(first, 2, "an epoch ahead")
        ask(first, 1, "the right epoch", [])
        ask(first, 1, "the same epoch again", [])
        ask(first, 2, "the next epoch", [])
        ask(first, -2, "a negative epoch", [])
        ask(first, 2**31 - 1, "the last epoch", [])
        second = ask(first, NEW, "anew").session_id
        ask(first, 3, "the one before it", [])
        ask(second, 1, "the new one", [])
        ask(second, LAST, "its end")
        ask(second, 2, "after its end", [])
        empty = ask(0, NEW, "without partitions", []).session_id
        side.record("a session without partitions", empty != 0)
        third = ask(0, NEW, "a third one").session_id
        ask(third, LAST, "ended without partitions", [])
        ask(third, 1, "after its end", [])

    both.agree(scenario)


def test_from_names_to_ids_and_back(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(2))
        for before, after in ((12, 13), (13, 12)):
            session = Session(side, before)
            session.fetch(at(topic, 0), "before")
            session.version = after
            session.fetch([], "nothing new")
            session.fetch(at(topic, 0), "asked again")
            session.version = before
            session.fetch([], "back")

    both.agree(scenario)


def test_a_topic_deleted_and_created_again(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(2))
        by_id, by_name = Session(side, 18), Session(side, 12)
        for session in (by_id, by_name):
            session.fetch(at(topic, 0), "before")
        side.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000))
        side.call(
            MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False),
            until=lambda answer: bool(answer.topics[0].error_code),
        )
        side.call(
            fetch_all(side, at(topic, 0)), until=lambda answer: bool(answer.responses[0].partitions[0].error_code)
        )
        for session in (by_id, by_name):
            session.fetch([], "deleted")
            session.fetch([], "deleted, again")
        side.topic()
        fill(side, topic, batch(1))
        for session in (by_id, by_name):
            session.fetch([], "created again")
            session.fetch(at(topic, 0), "asked again")
            session.fetch([], "nothing new")

    both.agree(scenario)


@pytest.mark.parametrize("version", [7, 18])
def test_waiting_in_a_session(both: Both, version: int) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(partitions=2)
        session = Session(side, version)
        session.fetch(at(topic, 0, 0), "full", min_bytes=1, max_wait_ms=0)
        session.fetch([], "nothing comes", min_bytes=1, max_wait_ms=30)
        request = fetch_all(
            side, [], version, session_id=session.id, session_epoch=session.epoch, min_bytes=1, max_wait_ms=60_000
        )
        side.send(request, version)
        with side.another_connection():
            fill(side, topic, batch(1), partition=1)
        side.receive(request, version)

    both.agree(scenario)


def test_served_in_turn(both: Both) -> None:
    """Partitions that sent records come after those that did not, so that none waits for ever."""

    def scenario(side: Side) -> None:
        topic = side.topic(partitions=3)
        for partition in range(3):
            fill(side, topic, batch(1, size=1000), batch(1, size=1000), partition=partition)
        session = Session(side, 18)
        session.fetch(at(topic, 0, 0, 0), "full", max_bytes=500)
        for turn in range(4):
            session.fetch([], f"turn {turn}", max_bytes=500)
        for turn in range(4):
            session.fetch([], f"turn {turn}", max_bytes=2200)

    both.agree(scenario)


def test_fetches_without_partitions(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in VERSIONS:
            for session_epoch in (NEW, LAST):
                request = FetchRequest(session_epoch=session_epoch, max_wait_ms=60_000, min_bytes=1)
                side.ask(request, version, note=f"epoch {session_epoch}")

    both.agree(scenario)
