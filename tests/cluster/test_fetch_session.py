"""The follower's fetch session: what is told once, what again, what is taken back."""

from kwire.cluster.fetch_session import FetchSession, Position
from kwire.protocol.messages.fetch import FetchRequest

A, B = b"a" * 16, b"b" * 16


def at(offset: int, epoch: int = 5) -> Position:
    return Position(offset, epoch, epoch, 0)


def fill(session: FetchSession, positions, gone=()):
    """(session id, epoch, {partition: offset}, forgotten partitions) of the next request."""
    request = FetchRequest()
    session.fill(request, positions, gone)
    asked = {
        (topic.topic_id, partition.partition): partition.fetch_offset
        for topic in request.topics
        for partition in topic.partitions
    }
    forgotten = {
        (topic.topic_id, partition) for topic in request.forgotten_topics_data for partition in topic.partitions
    }
    return request.session_id, request.session_epoch, asked, forgotten


def test_only_what_changed_is_told_again():
    session = FetchSession(1000)
    assert session.begins
    assert fill(session, {(A, 0): at(1), (A, 1): at(2), (B, 0): at(3)}) == (
        0,
        0,
        {(A, 0): 1, (A, 1): 2, (B, 0): 3},
        set(),
    )
    session.answered(77)
    assert not session.begins
    assert fill(session, {(A, 0): at(9), (A, 1): at(2)}) == (77, 1, {(A, 0): 9}, set())
    session.answered(77)
    assert fill(session, {(A, 0): at(9, epoch=6)}, gone=[(B, 0), (B, 1)]) == (77, 2, {(A, 0): 9}, {(B, 0)})
    assert session.asked == {(A, 0): at(9, epoch=6), (A, 1): at(2)}


def test_every_field_of_a_partition():
    request = FetchRequest()
    FetchSession(1000).fill(request, {(A, 3): Position(10, 4, 5, 2)})
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert topic.topic_id == A
    assert partition.partition == 3
    assert (partition.fetch_offset, partition.last_fetched_epoch, partition.current_leader_epoch) == (10, 4, 5)
    assert (partition.log_start_offset, partition.partition_max_bytes) == (2, 1000)


def test_without_a_session_everything_is_told_each_time():
    session = FetchSession(1000)
    fill(session, {(A, 0): at(1), (B, 0): at(3)})
    session.answered(0)
    assert session.begins
    assert session.asked  # the answer is still to be matched with it
    assert fill(session, {(A, 0): at(1)}) == (0, 0, {(A, 0): 1}, set())
    assert session.asked == {(A, 0): at(1)}


def test_reset_begins_anew():
    session = FetchSession(1000)
    fill(session, {(A, 0): at(1)})
    session.answered(77)
    session.reset()
    assert fill(session, {(A, 0): at(1)}) == (0, 0, {(A, 0): 1}, set())


def test_epochs_wrap_to_one():
    session = FetchSession(1000)
    fill(session, {(A, 0): at(1)})
    session.answered(77)
    session._epoch = 0x7FFFFFFF
    assert fill(session, {})[1] == 0x7FFFFFFF
    session.answered(77)
    assert fill(session, {})[1] == 1
