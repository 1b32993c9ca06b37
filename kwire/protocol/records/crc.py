"""CRC-32C (Castagnoli), the checksum of record batches and producer snapshots."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, PathFinder
from typing import cast

Buffer = bytes | bytearray | memoryview

# crc32c(data, value=0, gil_release_mode=-1) -> int: continues from `value`; large buffers release the GIL.
_Crc32c = Callable[..., int]


def _load() -> _Crc32c:
    """The C function of the `crc32c` package, without running the package's own `__init__`.

    That one imports importlib.metadata (and with it email, tempfile, zipfile: tens of milliseconds, a large part of
    what starting a broker costs) only to learn its own version. Where the extension is not found in the usual place
    the package is imported after all.
    """
    package = PathFinder.find_spec("crc32c")
    folders = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("crc32c._crc32c", folders) if folders else None
    if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
        module = spec.loader.create_module(spec)
        if module is not None:
            spec.loader.exec_module(module)
            return cast(_Crc32c, module.crc32c)
    from crc32c import crc32c as function

    return cast(_Crc32c, function)


crc32c: _Crc32c = _load()
"""`crc32c(data, value=0) -> int`: the checksum of `data`, continuing from the checksum `value` of what came before."""
