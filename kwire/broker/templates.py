"""Requests that differ from an earlier one in little are not decoded again.

A producer that sends records one by one sends the same bytes each time but for the correlation id and the records, a
consumer without a fetch session the same but for the offsets. What stands before these says what is asked for; who has
understood it once (a `Template`) knows it again by these bytes. A template holds what was decoded and nothing of the
broker's state, so that it can't become stale.

It need not be able to answer everything: where it gives no answer nothing has happened, and the request is understood
and handled like any other.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Protocol

from kwire.broker.parked import Parked, Waiting

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.dispatch import Call, Parts
    from kwire.broker.session import Session
    from kwire.protocol.schema import Message

_MOST_KNOWN = 4096
"""So many templates there are at most, for all clients together, and so many beginnings that came once."""

_LONGEST: Final = 512
"""Bytes of a beginning: with the longest name of a topic (249) there is room for a client id. A template takes about
twice as much."""

_MOST_SHAPES: Final = 4
"""So many are tried for each request of a connection. A producer has one for each length of a topic's name."""

_CORRELATION_ID_ENDS: Final = 8


Begun = Coroutine[Any, Any, "Parts | Message | Parked | None"]
"""What is left of a request: gives the answer, or what its handler would return."""


class Template(Protocol):
    """What many requests have in common."""

    settles: bool
    """Whether of a request which this one can't answer nothing more is to be learned: no other one would do better."""

    def answer(
        self, broker: Broker, session: Session, frame: memoryview, correlation_id: int
    ) -> Parts | Begun | Waiting | None:
        """Does what is asked for, and gives the answer as it is sent; nothing of it where there is to be none. Or, when
        its turn was over before it was done, what is left to do; or what waits, where that is all there is to do now.

        None where it takes more than that, or fails: nothing has happened then.
        """


class TemplateMaker(Protocol):
    """The module of an API's templates."""

    def beginning(self, call: Call, frame: memoryview) -> int:
        """How many bytes of a request, from its API key on, are to be the same in others; 0 if it can't have any."""

    def template(self, call: Call, frame: memoryview) -> Template | None:
        """That of a request which has such a beginning; None if there can't be one."""


class Shape:
    """The length of the beginning that requests have in common."""

    __slots__ = ("size", "unpack")

    def __init__(self, size: int) -> None:
        """`size`: bytes from the API key on."""
        self.size = size
        self.unpack = Struct(f">4si{size - _CORRELATION_ID_ENDS}s").unpack_from
        """What stands before the correlation id, that, and what stands behind it, of a frame that is so long."""


_shape = lru_cache(maxsize=256)(Shape)


class _Never:
    """Stands for the template of a request that can have none."""

    settles = False

    def answer(self, broker: Broker, session: Session, frame: memoryview, correlation_id: int) -> None:
        return None


_NEVER: Final = _Never()


class Templates:
    """Those of a broker's clients, by the beginnings of their requests without the correlation id."""

    def __init__(self) -> None:
        self._known: dict[bytes, Template] = {}
        """Those that were made first in front."""
        self._once: set[bytes] = set()
        """Beginnings that came once. Most never come again; with the second one its template is made."""

    def find(self, shapes: tuple[Shape, ...], frame: memoryview) -> tuple[Template, int] | None:
        """The template of a request, and its correlation id. `shapes`: what `learn` gave for its connection."""
        for shape in shapes:
            if len(frame) > shape.size:
                start, correlation_id, rest = shape.unpack(frame)
                template = self._known.get(start + rest)
                if template is not None:
                    return template, correlation_id
        return None

    def learn(self, shapes: tuple[Shape, ...], call: Call, frame: memoryview) -> tuple[Shape, ...]:
        """Notes a request that was understood. Returns the shapes by which those of its connection are known."""
        maker = call.api.templates
        if maker is None:
            return shapes
        size = maker.beginning(call, frame)
        if not 0 < size <= _LONGEST:
            return shapes
        shape = _shape(size)
        start, _, rest = shape.unpack(frame)
        key, known, once = start + rest, self._known, self._once
        if key not in known:
            if key not in once:
                if len(once) >= _MOST_KNOWN:
                    once.clear()
                once.add(key)
                return shapes
            once.remove(key)
            if len(known) >= _MOST_KNOWN:
                del known[next(iter(known))]
            known[key] = maker.template(call, frame) or _NEVER
        return shapes if shape in shapes else (shape, *shapes[: _MOST_SHAPES - 1])
