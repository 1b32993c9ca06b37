"""The types of the wire: what a field of a message can be.

A type says its name in the protocol guide, its Python zero value, and, where its size never changes, its `struct`
format character and size in bytes. How a type is laid out is told once, in `kwire.protocol.codec.construct_of`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.protocol.schema import Struct

TopicPartition = tuple[str, int]

Buffer = bytes | memoryview
"""A `bytes` field: a memoryview onto the frame after decoding; either is taken when encoding."""

Records = Any
"""A `records` field. After decoding: a memoryview onto the frame, or None.

Encoding takes bytes, a memoryview, a FileSlice, what is `Streamed`, a list of these, or None.
"""


class WireType:
    """One type that is not made of others. `format` and `size` are empty and 0 where the size varies."""

    __slots__ = ("format", "name", "size", "zero")

    def __init__(self, name: str, zero: Any, format: str = "", size: int = 0) -> None:
        self.name = name
        self.zero = zero
        self.format = format
        self.size = size

    def __repr__(self) -> str:
        return self.name


class Array:
    """A list of `element`: a wire type or a struct.

    With `lasting`, the encoder also takes `kwire.protocol.codec.lasting.LastingItems`, whose bytes it keeps.
    """

    __slots__ = ("element", "lasting")

    def __init__(self, element: WireType | type[Struct], *, lasting: bool = False) -> None:
        self.element = element
        self.lasting = lasting

    def __repr__(self) -> str:
        name = self.element.name if isinstance(self.element, WireType) else self.element.__name__
        return f"[]{name}"


BOOL = WireType("bool", False, "?", 1)
INT8 = WireType("int8", 0, "b", 1)
INT16 = WireType("int16", 0, "h", 2)
UINT16 = WireType("uint16", 0, "H", 2)
INT32 = WireType("int32", 0, "i", 4)
UINT32 = WireType("uint32", 0, "I", 4)
INT64 = WireType("int64", 0, "q", 8)
FLOAT64 = WireType("float64", 0.0, "d", 8)
UUID = WireType("uuid", bytes(16), "16s", 16)
STRING = WireType("string", "")
BYTES = WireType("bytes", b"")
RECORDS = WireType("records", None)
