"""Writes the straight-line encoder of a construct Struct.

The function written takes the message `o` and the list `parts`, and returns the message's bytes. `pieces` are joined
at the end; records that are large or lie in a file go to `parts`, with all pieces before them. Neighbouring fields of
fixed size become one run, written by one precompiled `struct`, together with the length byte that follows them; the
zero byte that says "no tagged fields" ends a run as padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from construct import Construct

from kwire.protocol.codec.elements import Blob, Counted, MessageStruct, OrNull, RecordBatches, Repeated, Text
from kwire.protocol.codec.lines import FORMATS, Lines, absent_fields, format_of, is_default, known_tags


class EncoderWriter(Lines):
    """One encoder. `write` gives its source."""

    def __init__(self, definition: MessageStruct) -> None:
        super().__init__()
        self._definition = definition
        self._run: list[tuple[str, str]] = []
        self._pieces = "pieces"

    def write(self) -> str:
        """The source of the function `encode_v<version>`."""
        version = self._definition.version
        title = f"{self._definition.declared.__name__} version {version}"
        with self.block("try:"):
            self.add("pieces = []")
            self._struct("o", self._definition)
            self._flush()
            self.add('return b"".join(pieces)')
        with self.block("except (AttributeError, OverflowError, TypeError, UnicodeError, struct_error) as error:"):
            self.add(f'raise EncodeError(f"{title}: {{error}}") from error')
        return "\n".join([f"def encode_v{version}(o, parts):", *self.text]) + "\n"

    def _fixed(self, value: str, format: str) -> None:
        self._run.append((value, format))

    def _packed(self, run: list[tuple[str, str]]) -> str:
        """An expression for the bytes of a run. An `x` pads with a zero byte and takes no value."""
        format = "".join(item for _, item in run)
        if not format.strip("x"):
            return repr(bytes(len(format)))
        return f"{self.packed('pack', format)}({', '.join(value for value, item in run if item != 'x')})"

    def _flush(self) -> None:
        if self._run:
            self.add(f"{self._pieces}.append({self._packed(self._run)})")
            self._run.clear()

    def _flush_with_length(self, k: str, element: Counted) -> None:
        """Ends the run with the length or count `k`: one byte where it is compact and small, as it nearly always is."""
        if not element.compact:
            self._fixed(k, FORMATS[element.length])
            self._flush()
            return
        long = f"{'long_text' if isinstance(element, Text) else 'varint'}({k})"
        if self._run:
            long = f"{self._packed(self._run)} + {long}"
        short = self._packed([*self._run, (k, "B")]) if self._run else f"BYTE[{k}]"
        self._run.clear()
        self.add(f"{self._pieces}.append({short} if {k} < 128 else {long})")

    def _struct(self, value: str, definition: MessageStruct) -> None:
        self._refuse_lost_values(value, definition)
        for member in definition.subcons:
            if member.name == "tagged_fields":
                self._tags(value, definition)
            else:
                self._element(f"{value}.{member.name}", member.subcon)

    def _refuse_lost_values(self, value: str, definition: MessageStruct) -> None:
        owner, version = definition.declared.__name__, definition.version
        for field in absent_fields(definition):
            if not field.ignorable:
                with self.block(f"if not ({is_default(field, f'{value}.{field.name}')}):"):
                    self.add(f'raise UnsupportedFieldError(unsupported("{owner}.{field.name}", {version}))')
        if all(member.name != "tagged_fields" for member in definition.subcons):
            with self.block(f"if {value}.unknown_tags:"):
                self.add(f'raise UnsupportedFieldError(unsupported("{owner}.unknown_tags", {version}))')

    def _element(self, value: str, element: Construct) -> None:
        format = format_of(element)
        if format is not None:
            self._fixed(value, format)
        elif isinstance(element, MessageStruct):
            name = self.name("o")
            self.add(f"{name} = {value}")
            self._struct(name, element)
        elif isinstance(element, OrNull):
            self._or_null(value, element)
        elif isinstance(element, Repeated):
            self._repeated(value, element)
        elif isinstance(element, Text):
            self._text(value, element)
        else:
            assert isinstance(element, Blob)
            self._blob(value, element)

    def _or_null(self, value: str, element: OrNull) -> None:
        name = self.name("o")
        self.add(f"{name} = {value}")
        run = list(self._run)
        with self.block(f"if {name} is None:"):
            self._fixed("0" if element.tagged else "-1", "b")
            self._flush()
        with self.block("else:"):
            self._run = [*run, ("1", "b")]
            self._struct(name, element.subcon)
            self._flush()

    @contextmanager
    def _unless_null(self, value: str, element: Counted) -> Iterator[None]:
        """What is added inside is for a value that is not null; a null one is written here."""
        if not element.nullable:
            yield
            return
        run = list(self._run)
        with self.block(f"if {value} is None:"):
            self._fixed("-1", "x" if element.compact else FORMATS[element.length])
            self._flush()
        with self.block("else:"):
            self._run = run
            yield
            self._flush()

    def _length(self, size: str, element: Counted) -> None:
        """Writes a length or count, and ends the run."""
        k = self.name("k")
        self.add(f"{k} = {size} + 1" if element.compact else f"{k} = {size}")
        self._flush_with_length(k, element)

    def _text(self, value: str, element: Text) -> None:
        text = self.name("s")
        if element.nullable:
            self.add(f"{text} = {value}")
        with self._unless_null(text, element):
            self.add(f"{text} = {text if element.nullable else value}.encode()")
            self._length(f"len({text})", element)
            self.add(f"{self._pieces}.append({text})")

    def _blob(self, value: str, element: Blob) -> None:
        data = self.name("s")
        self.add(f"{data} = {value}")
        with self._unless_null(data, element):
            if isinstance(element, RecordBatches):
                assert self._pieces == "pieces", "records in a tagged field cannot be parts of their own"
                self._length(f"records_size({data})", element)
                self.add(f"put_records({data}, pieces, parts)")
            else:
                self._length(f"len({data})", element)
                self.add(f"{self._pieces}.append({data})")

    def _repeated(self, value: str, element: Repeated) -> None:
        items = self.name("l")
        self.add(f"{items} = {value}")
        with self._unless_null(items, element):
            self._length(f"len({items})", element)
            format = format_of(element.element)
            if format is not None:
                packed = f'b"".join({items})' if format == "16s" else f'pack(f">{{len({items})}}{format}", *{items})'
                with self.block(f"if {items}:"):
                    self.add(f"{self._pieces}.append({packed})")
                return
            if element.lasting:
                self._lasting_items(items, element)
            else:
                self._items(items, element)

    def _items(self, items: str, element: Repeated) -> None:
        item = self.name("v")
        with self.block(f"for {item} in {items}:"):
            if isinstance(element.element, MessageStruct):
                self._struct(item, element.element)
            else:
                self._element(item, element.element)
            self._flush()

    def _lasting_items(self, items: str, element: Repeated) -> None:
        """The bytes that were kept, or else the items, whose bytes are kept from now on."""
        version, lasting, begun = self._definition.version, self.name("lasting"), self.name("begun")
        self.add(f"{lasting} = {items}.__class__ is LastingItems")
        with self.block(f"if {lasting} and {version} in {items}.encoded:"):
            self.add(f"{self._pieces}.append({items}.encoded[{version}])")
        with self.block("else:"):
            self.add(f"{begun} = len({self._pieces})")
            self._items(items, element)
            with self.block(f"if {lasting}:"):
                self.add(f'{items}.encoded[{version}] = b"".join({self._pieces}[{begun}:])')

    def _tags(self, value: str, definition: MessageStruct) -> None:
        known = known_tags(definition)
        fields = {field.name: field for field in definition.declared.declared_fields}
        absent = {name: is_default(fields[name], f"{value}.{name}") for name, _ in known.values()}
        run = list(self._run)
        with self.block(f"if {' and '.join([f'{value}.unknown_tags is None', *absent.values()])}:"):
            self._fixed("", "x")
            self._flush()
        with self.block("else:"):
            self._run = run
            self._flush()
            tags, outer = "{}", self._pieces
            if known:
                tags = self.name("t")
                self.add(f"{tags} = {{}}")
            for tag, (name, element) in known.items():
                with self.block(f"if not ({absent[name]}):"):
                    self._pieces = self.name("pieces")
                    self.add(f"{self._pieces} = []")
                    self._element(f"{value}.{name}", element)
                    self._flush()
                    self.add(f'{tags}[{tag}] = b"".join({self._pieces})')
                    self._pieces = outer
            self.add(f"{outer}.append(join_tags({tags}, {value}.unknown_tags))")
