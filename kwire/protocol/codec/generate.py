"""From construct Structs, a Python module that decodes and encodes one message."""

from __future__ import annotations

from collections.abc import Iterable

from kwire.protocol.codec.construct_of import construct_of
from kwire.protocol.codec.decoder import DecoderWriter
from kwire.protocol.codec.encoder import EncoderWriter
from kwire.protocol.codec.lines import packed_name
from kwire.protocol.schema import Message

_IMPORTS = """\
from struct import Struct, pack, unpack_from
from struct import error as struct_error

from kwire.protocol.codec.errors import EncodeError, MalformedError, UnsupportedFieldError
from kwire.protocol.codec.lasting import LastingItems
from kwire.protocol.codec.runtime import (
    BYTE,
    bad_length,
    bad_tag_size,
    join_tags,
    long_text,
    put_records,
    read_tag,
    read_tags,
    read_text_length,
    records_size,
    unsupported,
)
from kwire.protocol.codec.varints import read_long_varint, varint
"""


def module_source(message: type[Message], decoders: Iterable[int], encoders: Iterable[int]) -> str:
    """The source of a module: `decode_v<n>(b, p)` for each version in `decoders`, `encode_v<n>(o, parts)` likewise."""
    writers: list[DecoderWriter | EncoderWriter] = []
    writers += [DecoderWriter(construct_of(message, version)) for version in decoders]
    writers += [EncoderWriter(construct_of(message, version)) for version in encoders]
    functions = [writer.write() for writer in writers]
    classes = sorted({declared.__name__ for writer in writers for declared in writer.classes} or {message.__name__})
    formats = sorted({packed for writer in writers for packed in writer.formats})
    structs = [
        f'{packed_name(verb, format)} = Struct(">{format}").{"unpack_from" if verb == "unpack" else verb}\n'
        for verb, format in formats
    ]
    head = f'"""Written by kwire.protocol.codec.generate from the declaration of {message.__name__}."""\n\n'
    imports = (
        f"{_IMPORTS}from {message.__module__} import {', '.join(classes)}\nfrom kwire.protocol.uuids import ZERO\n"
    )
    return "\n\n".join([head + imports + "\nnew = object.__new__\n" + "".join(structs), *functions])
