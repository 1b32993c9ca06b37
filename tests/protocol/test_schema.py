"""Declared structs as Python classes."""

from __future__ import annotations

import pytest

from kwire.protocol.schema import NEVER, Message, Struct, field, parse_versions
from kwire.protocol.types import INT32, STRING, Array


class Inner(Struct):
    number: int = field(INT32, "0+", default=-1)


class Outer(Message, api_key=7, versions="2-5"):
    """A message like those of the protocol."""

    name: str = field(STRING, "0+")
    alias: str | None = field(STRING, "3+", nullable="3+", default=None)
    inner: Inner = field(Inner, "0+")
    inners: list[Inner] = field(Array(Inner), "0-4")
    absent: list[int] | None = field(Array(INT32), "0+", nullable="0+", default=None)


def test_an_instance_begins_with_the_declared_defaults() -> None:
    outer = Outer()
    assert (outer.name, outer.alias, outer.inner, outer.inners, outer.absent) == ("", None, Inner(number=-1), [], None)
    assert outer.unknown_tags is None


def test_instances_share_no_default() -> None:
    first, second = Outer(), Outer()
    first.inners.append(Inner())
    first.inner.number = 5
    assert second == Outer(name="", inner=Inner(), inners=[])


def test_null_can_be_given_where_the_default_is_a_list() -> None:
    assert Outer(inners=None).inners is None  # type: ignore[arg-type]


def test_instances_are_equal_by_value_and_type() -> None:
    class Other(Struct):
        number: int = field(INT32, "0+", default=-1)

    assert Inner(number=1) == Inner(number=1)
    assert Inner(number=1) != Inner(number=2)
    assert Inner(number=1) != Inner(number=1, unknown_tags={1: b""})
    assert Inner() != Other()


def test_repr_reads_as_the_call() -> None:
    assert repr(Inner(number=3, unknown_tags={1: b"x"})) == "Inner(number=3, unknown_tags={1: b'x'})"
    assert repr(Outer(name="n")) == "Outer(name='n', alias=None, inner=Inner(number=-1), inners=[], absent=None)"


def test_a_wrong_name_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="nmae"):
        Outer(nmae="x")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Outer().nmae = "x"  # type: ignore[attr-defined]


def test_a_message_knows_its_versions() -> None:
    assert (Outer.api_key, Outer.min_version, Outer.max_version, Outer.flexible_from) == (7, 2, 5, NEVER)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3", [3], [2, 4]), ("3-5", [3, 4, 5], [2, 6]), ("3+", [3, 99], [2, NEVER]), ("", [], [0, 1])],
)
def test_ranges_of_versions(text: str, inside: list[int], outside: list[int]) -> None:
    versions = parse_versions(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)
