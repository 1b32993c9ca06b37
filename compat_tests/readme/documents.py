"""The project's documents, taken apart."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / name
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "spark_jobs/README.md", "benchmarks/README.md")
]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path, language: str) -> list[str]:
    """What stands between ```LANGUAGE and ```."""
    return [text for named, text in _BLOCK.findall(document.read_text()) if named == language]


def prose(document: Path) -> str:
    """The document without its blocks."""
    return _BLOCK.sub("", document.read_text())


def commands(document: Path) -> list[str]:
    """The command lines of its blocks, without comments, and those that its prose quotes."""
    lines = [line.partition(" #")[0].strip() for block in blocks(document, "") for line in block.splitlines()]
    return [line for line in lines if line] + re.findall(r"`([^`\n]+)`", prose(document))
