"""Writes the straight-line decoder of a construct Struct.

The function written takes the buffer `b` and the position `p` at which the message begins, and returns the message
and the position behind it; what stands there is left alone.
Neighbouring fields of fixed size become one run, read by one precompiled `struct`; the length byte of a string and
the count byte of an array or of tagged fields belong to the run before them, since one byte of them is always there.
`n` is the end of the buffer, and nothing that a length or a count announces is taken before it is checked against it.
"""

from __future__ import annotations

from struct import calcsize

from construct import Construct

from kwire.protocol.codec.elements import Blob, Counted, MessageStruct, OrNull, Repeated, TaggedFields, Text
from kwire.protocol.codec.lines import FORMATS, Lines, absent_fields, format_of, known_tags, least_size, literal
from kwire.protocol.schema import Field, Struct
from kwire.protocol.types import Array


class DecoderWriter(Lines):
    """One decoder. `write` gives its source."""

    def __init__(self, definition: MessageStruct) -> None:
        super().__init__()
        self._definition = definition
        self._run: list[tuple[str, str]] = []

    def write(self) -> str:
        """The source of the function `decode_v<version>`."""
        version = self._definition.version
        title = f"{self._definition.declared.__name__} version {version}"
        self.add("n = len(b)")
        with self.block("try:"):
            self._struct("o", self._definition)
            self._flush()
        with self.block("except (IndexError, struct_error):"):
            self.add(f'raise MalformedError("{title} is cut short") from None')
        self.add("return o, p")
        return "\n".join([f"def decode_v{version}(b, p):", *self.text]) + "\n"

    def _fixed(self, target: str, format: str) -> None:
        self._run.append((target, format))

    def _flush(self) -> None:
        """Ends the run: reads its fields, and moves on behind them."""
        if not self._run:
            return
        format = "".join(item for _, item in self._run)
        if format == "B":
            self.add(f"{self._run[0][0]} = b[p]")
        else:
            targets = ", ".join(target for target, _ in self._run)
            comma = "," if len(self._run) == 1 else ""
            self.add(f"{targets}{comma} = {self.packed('unpack', format)}(b, p)")
        self.add(f"p += {calcsize(f'>{format}')}")
        self._run.clear()

    def _struct(self, target: str, definition: MessageStruct) -> None:
        self._new(target, definition.declared, absent_fields(definition))
        for member in definition.subcons:
            if isinstance(member.subcon, TaggedFields):
                self._tags(target, definition)
            else:
                what = f"{definition.declared.__name__}.{member.name}"
                self._element(f"{target}.{member.name}", member.subcon, what)
        if not any(isinstance(member.subcon, TaggedFields) for member in definition.subcons):
            self.add(f"{target}.unknown_tags = None")

    def _new(self, target: str, declared: type[Struct], fields: list[Field] | tuple[Field, ...]) -> None:
        """An instance of which `fields` have their defaults, and others are to follow."""
        self.add(f"{target} = new({self.class_name(declared)})")
        for field in fields:
            self._default(f"{target}.{field.name}", field)

    def _default(self, target: str, field: Field) -> None:
        if not field.has_mutable_default:
            self.add(f"{target} = {literal(field.default)}")
        elif isinstance(field.kind, Array):
            self.add(f"{target} = []")
        else:
            assert isinstance(field.kind, type)
            name = self.name("o")
            self._new(name, field.kind, field.kind.declared_fields)
            self.add(f"{name}.unknown_tags = None")
            self.add(f"{target} = {name}")

    def _element(self, target: str, element: Construct, what: str) -> None:
        format = format_of(element)
        if format is not None:
            self._fixed(target, format)
        elif isinstance(element, MessageStruct):
            self._inner(target, element)
        elif isinstance(element, OrNull):
            marker = self.name("k")
            self._fixed(marker, "B" if element.tagged else "b")
            self._flush()
            if element.tagged:
                with self.block(f"if {marker} > 127:"):
                    self.add(f"{marker}, p = read_long_varint(b, p)")
            with self.block(f"if {marker} == 0:" if element.tagged else f"if {marker} < 0:"):
                self.add(f"{target} = None")
            with self.block("else:"):
                self._inner(target, element.subcon)
                self._flush()
        else:
            self._counted(target, element, what)

    def _inner(self, target: str, definition: MessageStruct) -> None:
        name = self.name("o")
        self._struct(name, definition)
        self.add(f"{target} = {name}")

    def _counted(self, target: str, element: Counted, what: str) -> None:
        """Anything behind a length or count `k`, which a compact one announces as one more."""
        k = self.name("k")
        self._fixed(k, "B" if element.compact else FORMATS[element.length])
        self._flush()
        if element.compact:
            read = "read_text_length" if isinstance(element, Text) else "read_long_varint"
            with self.block(f"if {k} > 127:"):
                self.add(f"{k}, p = {read}(b, p)")
            self.add(f"{k} -= 1")
        if not element.nullable:
            self._items(target, k, element, what)
            return
        with self.block(f"if {k} < 0:"):
            self.add(f"{target} = None")
        with self.block("else:"):
            self._items(target, k, element, what)

    def _items(self, target: str, k: str, element: Counted, what: str) -> None:
        least = least_size(element.element) if isinstance(element, Repeated) else 1
        with self.block(f"if not 0 <= {k} <= n - p:" if least == 1 else f"if not 0 <= {k} * {least} <= n - p:"):
            self.add(f'raise bad_length("{what}", {k}, n - p)')
        if isinstance(element, Repeated):
            self._repeated(target, k, element.element, what)
            return
        end = self.name("e")
        self.add(f"{end} = p + {k}")
        if isinstance(element, Text):
            self.add(f'{target} = str(b[p:{end}], "utf-8", "replace")')
        else:
            assert isinstance(element, Blob)
            self.add(f"{target} = memoryview(b)[p:{end}]")
        self.add(f"p = {end}")

    def _repeated(self, target: str, k: str, element: Construct, what: str) -> None:
        format = format_of(element)
        if format == "16s":
            self.add(f"{target} = [bytes(b[i : i + 16]) for i in range(p, p + {k} * 16, 16)]")
            self.add(f"p += {k} * 16")
        elif format is not None:
            size = calcsize(f">{format}")
            self.add(f'{target} = list(unpack_from(f">{{{k}}}{format}", b, p))')
            self.add(f"p += {k}" if size == 1 else f"p += {k} * {size}")
        else:
            items = self.name("l")
            self.add(f"{target} = {items} = []")
            with self.block(f"for _ in range({k}):"):
                item = self.name("o") if isinstance(element, MessageStruct) else self.name("v")
                if isinstance(element, MessageStruct):
                    self._struct(item, element)
                else:
                    self._element(item, element, what)
                self._flush()
                self.add(f"{items}.append({item})")

    def _tags(self, target: str, definition: MessageStruct) -> None:
        t = self.name("t")
        self._fixed(t, "B")
        self._flush()
        known = known_tags(definition)
        for field in definition.declared.declared_fields:
            if any(field.name == name for name, _ in known.values()):
                self._default(f"{target}.{field.name}", field)
        self.add(f"{target}.unknown_tags = None")
        with self.block(f"if {t}:"):
            if known:
                self._known_tags(target, t, known, definition.declared.__name__)
            else:
                self.add(f"{target}.unknown_tags, p = read_tags(b, p, {t})")

    def _known_tags(self, target: str, t: str, known: dict[int, tuple[str, Construct]], owner: str) -> None:
        tag, end, unknown = self.name("g"), self.name("e"), self.name("u")
        with self.block(f"if {t} > 127:"):
            self.add(f"{t}, p = read_long_varint(b, p)")
        self.add(f"{unknown} = {{}}")
        with self.block(f"for _ in range({t}):"):
            self.add(f"{tag}, p, {end} = read_tag(b, p)")
            word = "if"
            for number, (name, element) in known.items():
                with self.block(f"{word} {tag} == {number}:"):
                    self._element(f"{target}.{name}", element, f"{owner}.{name}")
                    self._flush()
                word = "elif"
            with self.block("else:"):
                self.add(f"{unknown}[{tag}] = bytes(b[p:{end}])")
                self.add(f"p = {end}")
            with self.block(f"if p != {end}:"):
                self.add(f"raise bad_tag_size({tag}, {end} - p)")
        self.add(f"{target}.unknown_tags = {unknown} or None")
