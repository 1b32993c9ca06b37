"""Having a process use kwire as the plain Python that it is, where some of its modules are there compiled as well.

    from kwire.testing import plain
    plain.use()                                  before anything else of kwire is imported

For what a compiled module hides: profilers, debuggers, and tests that replace what a module refers to. Processes that
this one starts (the cleaner's) are not concerned.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType


class Sources:
    """Finds modules of kwire by their sources alone."""

    def __init__(self) -> None:
        self._folders: dict[str, FileFinder] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder` has it; None for what is not in kwire."""
        if not name.startswith("kwire."):
            return None
        for folder in path or ():
            finder = self._folders.get(folder)
            if finder is None:
                finder = self._folders[folder] = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))
            found = finder.find_spec(name, target)
            if found is not None:
                return found
        return None


def use() -> None:
    """From now on, in this process. Raises RuntimeError where compiled modules of kwire were imported already."""
    if "kwire.compiled__mypyc" in sys.modules:
        raise RuntimeError("kwire was imported, compiled, before its sources were asked for")
    if not any(isinstance(finder, Sources) for finder in sys.meta_path):
        sys.meta_path.insert(0, Sources())
