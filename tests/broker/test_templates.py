"""What is remembered of requests, and for how long."""

from __future__ import annotations

from struct import pack
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.broker import templates
from kwire.broker.dispatch import Call
from kwire.broker.session import ANONYMOUS, Session
from kwire.broker.templates import Shape, Templates
from kwire.security.authorizer import AllowAll

SESSION = Session("PLAINTEXT", ANONYMOUS, "client", "1", AllowAll())
HEAD = b"\0\0\0\x0d"


class Named:
    """The template of requests of one beginning; answers with what stands behind that."""

    def __init__(self, beginning: bytes) -> None:
        self.beginning = beginning

    def answer(self, broker: object, session: object, frame: memoryview, correlation_id: int) -> bytes:
        assert (broker, session) == ("broker", SESSION)
        return b"%s %d %s" % (self.beginning, correlation_id, frame[8 + len(self.beginning) :])


class Maker:
    """Requests begin with all that stands before their first "=", if they have one."""

    def __init__(self) -> None:
        self.made: list[bytes] = []
        self.refused = False

    def beginning(self, call: object, frame: memoryview) -> int:
        return bytes(frame).find(b"=") + 1

    def template(self, call: object, frame: memoryview) -> Named | None:
        beginning = bytes(frame[8 : self.beginning(call, frame)])
        self.made.append(beginning)
        return None if self.refused else Named(beginning)


class Client:
    """One connection's requests, which are understood where no template answers them."""

    def __init__(self, known: Templates, maker: Maker) -> None:
        self.shapes: tuple[Shape, ...] = ()
        self._known = known
        api: Any = SimpleNamespace(templates=maker)
        self._call = Call(api, 0, None, SESSION, 0, None)

    def ask(self, rest: bytes, correlation_id: int = 1, head: bytes = HEAD) -> bytes | None:
        frame = memoryview(head + pack(">i", correlation_id) + rest)
        known: Any = self._known
        found = known.find(self.shapes, frame)
        answer: bytes | None = None if found is None else found[0].answer("broker", SESSION, frame, found[1])
        if answer is None:
            self.shapes = known.learn(self.shapes, self._call, frame)
        return answer


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
def client(maker: Maker) -> Client:
    return Client(Templates(), maker)


def teach(client: Client, *beginnings: bytes) -> None:
    for beginning in beginnings:
        assert [client.ask(beginning), client.ask(beginning)] == [None, None]


def test_the_third_request_of_a_kind_is_answered(client: Client, maker: Maker) -> None:
    assert client.ask(b"a=1") is None
    assert client.shapes == ()
    assert maker.made == []
    assert client.ask(b"a=2") is None
    assert maker.made == [b"a="]
    assert client.ask(b"a=3", 7) == b"a= 7 3"
    assert client.ask(b"a=4", -8) == b"a= -8 4"
    assert maker.made == [b"a="]


def test_other_beginnings_are_other_requests(client: Client) -> None:
    teach(client, b"a=1")
    assert client.ask(b"b=1") is None
    assert client.ask(b"aa=1") is None
    assert client.ask(b"a=1", head=b"\0\0\0\x0c") is None
    assert client.ask(b"a=1") == b"a= 1 1"


@pytest.mark.parametrize("rest", [b"", b"a", b"a="])
def test_what_is_not_longer_than_a_beginning_is_not_known(rest: bytes, client: Client) -> None:
    teach(client, b"a=1")
    assert client.ask(rest) is None


def test_who_has_no_beginning_is_not_remembered(client: Client, maker: Maker) -> None:
    for _ in range(3):
        assert client.ask(b"nothing") is None
    assert client.shapes == ()
    assert maker.made == []


def test_what_can_have_no_template_is_asked_for_one_once(client: Client, maker: Maker) -> None:
    maker.refused = True
    for _ in range(5):
        assert client.ask(b"a=1") is None
    assert maker.made == [b"a="]


def test_a_connection_learns_what_others_taught_with_its_first_request(maker: Maker) -> None:
    known = Templates()
    teach(Client(known, maker), b"a=1")
    client = Client(known, maker)
    assert client.ask(b"a=1") is None
    assert client.ask(b"a=2") == b"a= 1 2"
    assert maker.made == [b"a="]


def test_a_connection_is_known_by_a_few_lengths_the_newest_first(client: Client) -> None:
    beginnings = [b"a" * length + b"=1" for length in range(1, 7)]
    teach(client, *beginnings)
    assert [shape.size for shape in client.shapes] == [8 + length + 1 for length in (6, 5, 4, 3)]
    for beginning in beginnings[2:]:
        assert client.ask(beginning) is not None
    assert client.ask(beginnings[0]) is None
    assert [shape.size for shape in client.shapes] == [8 + length + 1 for length in (1, 6, 5, 4)]
    assert client.ask(beginnings[0]) is not None


def test_one_length_is_tried_once(client: Client) -> None:
    teach(client, b"a=1", b"b=1", b"c=1")
    assert [shape.size for shape in client.shapes] == [10]


def test_of_too_many_the_first_are_forgotten(client: Client, maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_MOST_KNOWN", 2)
    teach(client, b"a=1", b"b=1", b"c=1")
    assert client.ask(b"b=1") is not None
    assert client.ask(b"c=1") is not None
    teach(client, b"a=1")
    assert client.ask(b"b=1") is None
    assert client.ask(b"a=1") is not None
    assert maker.made == [b"a=", b"b=", b"c=", b"a="]


def test_those_that_come_once_drive_nobody_out(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_MOST_KNOWN", 2)
    teach(client, b"a=1")
    for number in range(10):
        assert client.ask(b"%d=1" % number) is None
    assert client.ask(b"a=1") is not None
    assert client.ask(b"0=1") is None  # it came too long ago
    assert client.ask(b"0=1") is None
    assert client.ask(b"0=1") is not None


def test_a_long_beginning_is_not_remembered(client: Client, maker: Maker) -> None:
    teach(client, b"a" * 503 + b"=1", b"a" * 504 + b"=1")
    assert maker.made == [b"a" * 503 + b"="]
    assert client.ask(b"a" * 503 + b"=1") is not None
    assert client.ask(b"a" * 504 + b"=1") is None
