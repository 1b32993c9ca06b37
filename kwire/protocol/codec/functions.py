"""Where the generated code of a message and version comes from.

Building the package writes one module a message into `_generated` (see `build`), so that a broker that serves needs
neither construct nor a compiler. Each such module carries the fingerprint of the sources it was written from. Where it
is missing, or the sources have changed since, or a version is not in it, the code is written now: about 60 ms for
importing construct, then 1 to 3 ms for each message and version.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

from kwire.protocol.schema import Message

Function = Callable[..., Any]

_SOURCES = (
    "../types.py",
    "../schema.py",
    "construct_of.py",
    "decoder.py",
    "elements.py",
    "encoder.py",
    "generate.py",
    "lines.py",
    "runtime.py",
)
"""What decides on the code written, besides the message's own module."""

_loader: Any = __spec__.loader if __spec__ else None
_folder = __file__.removesuffix("functions.py")
_of_sources: int | None = None


def find(message: type[Message], version: int, verb: str) -> Function:
    """The function that decodes or encodes (`verb`) a message in a version: built earlier, or written now.

    UnsupportedVersionError if the message has no such version.
    """
    name = f"{verb}_v{version}"
    function: Function | None = getattr(_built(message), name, None)
    return function or _written(message, version, verb)[name]


def fingerprint(message: type[Message]) -> int:
    """Changes whenever the code written for `message` may. OSError where the package has no sources."""
    global _of_sources
    if _of_sources is None:
        _of_sources = 0
        for name in _SOURCES:
            _of_sources = zlib.crc32(_loader.get_data(_folder + name), _of_sources)
    return zlib.crc32(_loader.get_data(sys.modules[message.__module__].__file__), _of_sources)


def module_name(message: type[Message]) -> str:
    """The generated module of a message: `fetch_request` for FetchRequest."""
    return "".join([f"_{char.lower()}" if char.isupper() else char for char in message.__name__])[1:]


def _built(message: type[Message]) -> object:
    """The module written when the package was built; None if there is none, or it is out of date."""
    try:
        module = import_module(f"kwire.protocol.codec._generated.{module_name(message)}")
        return module if fingerprint(message) == module.FINGERPRINT else None
    except (ImportError, OSError):
        return None


def _written(message: type[Message], version: int, verb: str) -> dict[str, Function]:
    from kwire.protocol.codec.generate import module_source

    wanted = [version]
    source = module_source(message, wanted if verb == "decode" else [], wanted if verb == "encode" else [])
    scope: dict[str, Any] = {}
    exec(compile(source, f"<{verb} {message.__name__} version {version}>", "exec"), scope)
    return scope
