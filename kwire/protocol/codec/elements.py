"""The pieces of the wire that construct does not bring along: Kafka's strings, bytes, arrays and tagged fields.

Each is a `construct.Construct` that parses and builds by itself, and shows its parts as attributes, from which
`kwire.protocol.codec.generate` writes the fast code.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from construct import (
    Adapter,
    Bytes,
    Construct,
    IntegerError,
    StreamError,
    Struct,
    Subconstruct,
    ValidationError,
    VarInt,
)

from kwire.protocol import schema
from kwire.protocol.codec.runtime import LONGEST_TEXT


def _left(stream: BytesIO) -> int:
    return len(stream.getbuffer()) - stream.tell()


class _Varint32(Adapter):
    """An unsigned varint of at most 32 bits in at most five bytes."""

    def _decode(self, value: int, context: Any, path: str) -> int:
        if value > 0xFFFFFFFF:
            raise IntegerError(f"{value} does not fit into 32 bits", path)
        return value

    def _encode(self, value: int, context: Any, path: str) -> int:
        return value

    def _parse(self, stream: BytesIO, context: Any, path: str) -> int:
        start = stream.tell()
        value: int = super()._parse(stream, context, path)
        if stream.tell() - start > 5:
            raise IntegerError("a varint of more than five bytes", path)
        return value


UVARINT = _Varint32(VarInt)


class _CompactLength(Adapter):
    """A length plus one, so that zero says null."""

    def _decode(self, value: int, context: Any, path: str) -> int:
        return value - 1

    def _encode(self, value: int, context: Any, path: str) -> int:
        return value + 1


COMPACT_LENGTH = _CompactLength(UVARINT)


class Counted(Subconstruct):
    """Something behind its length or count. `length` reads that; a negative one says null, if `nullable`."""

    def __init__(self, length: Construct, nullable: bool) -> None:
        super().__init__(length)
        self.length = length
        self.nullable = nullable

    @property
    def compact(self) -> bool:
        """Whether the length is a varint."""
        return self.length is COMPACT_LENGTH

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        length = self.length._parsereport(stream, context, path)
        if length >= 0:
            return self._parse_items(length, stream, context, path)
        if not self.nullable:
            raise ValidationError("null, and may not be", path)
        return None

    def _build(self, value: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if value is None:
            if not self.nullable:
                raise ValidationError("null, and may not be", path)
            self.length._build(-1, stream, context, path)
        else:
            self._build_items(value, stream, context, path)
        return value

    def _parse_items(self, length: int, stream: BytesIO, context: Any, path: str) -> Any:
        return Bytes(length)._parse(stream, context, path)

    def _build_items(self, value: Any, stream: BytesIO, context: Any, path: str) -> None:
        self.length._build(len(value), stream, context, path)
        stream.write(value)


class Text(Counted):
    """A string: at most 32767 bytes, whatever the length field could hold. Broken UTF-8 is mended, not refused."""

    def _parse_items(self, length: int, stream: BytesIO, context: Any, path: str) -> Any:
        if length > LONGEST_TEXT:
            raise ValidationError(f"a string of {length} bytes", path)
        return str(super()._parse_items(length, stream, context, path), "utf-8", "replace")

    def _build_items(self, value: Any, stream: BytesIO, context: Any, path: str) -> None:
        data = value.encode()
        if len(data) > LONGEST_TEXT:
            raise ValidationError(f"a string of {len(data)} bytes", path)
        super()._build_items(data, stream, context, path)


class Blob(Counted):
    """Bytes."""


class RecordBatches(Blob):
    """Bytes that are record batches. The fast code also takes slices of files for them."""


class Repeated(Counted):
    """An array of `element`. Where it is `lasting`, the fast code also takes items whose bytes it keeps."""

    def __init__(self, length: Construct, nullable: bool, element: Construct, lasting: bool) -> None:
        super().__init__(length, nullable)
        self.element = element
        self.lasting = lasting

    def _parse_items(self, length: int, stream: BytesIO, context: Any, path: str) -> Any:
        if length > _left(stream):
            raise StreamError(f"{length} elements in {_left(stream)} bytes", path)
        return [self.element._parsereport(stream, context, path) for _ in range(length)]

    def _build_items(self, value: Any, stream: BytesIO, context: Any, path: str) -> None:
        self.length._build(len(value), stream, context, path)
        for item in value:
            self.element._build(item, stream, context, path)


class OrNull(Subconstruct):
    """A struct that may be null, which a number before it says: an int8, negative for null, else 1.

    Where the struct is a tagged field, Kafka's code has a varint instead, 0 for null, else 1.
    """

    def __init__(self, struct: Construct, tagged: bool) -> None:
        super().__init__(struct)
        self.tagged = tagged

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        if self.tagged:
            is_null = UVARINT._parsereport(stream, context, path) == 0
        else:
            is_null = Bytes(1)._parse(stream, context, path)[0] > 0x7F
        return None if is_null else self.subcon._parsereport(stream, context, path)

    def _build(self, value: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if value is None:
            stream.write(b"\x00" if self.tagged else b"\xff")
        else:
            stream.write(b"\x01")
            self.subcon._build(value, stream, context, path)
        return value


class TaggedFields(Construct):
    """Tag, size and value of each field that has something to say; those in `known` by name, others as they came.

    Parses to the known ones that were there, by name, and the others under "unknown_tags", by tag.
    """

    def __init__(self, known: dict[int, tuple[str, Construct]]) -> None:
        super().__init__()
        self.known = known

    def _parse(self, stream: BytesIO, context: Any, path: str) -> Any:
        fields: dict[str, Any] = {}
        unknown: dict[int, bytes] = {}
        for _ in range(UVARINT._parse(stream, context, path)):
            tag = UVARINT._parse(stream, context, path)
            data = Bytes(UVARINT._parse(stream, context, path))._parse(stream, context, path)
            if tag not in self.known:
                unknown[tag] = data
                continue
            name, element = self.known[tag]
            inner = BytesIO(data)
            fields[name] = element._parsereport(inner, context, f"{path} -> {name}")
            if _left(inner):
                raise ValidationError(f"tagged field {tag} has {_left(inner)} bytes too many", path)
        if unknown:
            fields["unknown_tags"] = unknown
        return fields

    def _build(self, value: Any, stream: BytesIO, context: Any, path: str) -> Any:
        data = dict(value.get("unknown_tags") or {})
        for tag, (name, element) in self.known.items():
            if name in value:
                inner = BytesIO()
                element._build(value[name], inner, context, f"{path} -> {name}")
                data[tag] = inner.getvalue()
        UVARINT._build(len(data), stream, context, path)
        for tag in sorted(data):
            UVARINT._build(tag, stream, context, path)
            UVARINT._build(len(data[tag]), stream, context, path)
            stream.write(data[tag])
        return value


class MessageStruct(Struct):
    """A construct Struct of one declared struct in one version. Tagged fields are its last member, "tagged_fields"."""

    def __init__(self, declared: type[schema.Struct], version: int, members: list[Construct]) -> None:
        super().__init__(*members)
        self.declared = declared
        self.version = version
