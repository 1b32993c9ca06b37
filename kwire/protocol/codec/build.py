"""Writes the generated code out as modules: `python -m kwire.protocol.codec.build [FOLDER]`.

It runs when the package is built (see setup.py), and may be run again after a declaration has changed. The broker's
side is written in every version, what a client needs in the newest.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec.functions import fingerprint, module_name
from kwire.protocol.codec.generate import module_source
from kwire.protocol.schema import Message

FOLDER = Path(__file__).with_name("_generated")


def all_messages() -> Iterator[type[Message]]:
    """Every request and response, in order of their API keys."""
    for key, api in APIS.items():
        module = import_module(f"kwire.protocol.messages.{ApiKey(key).name.lower()}")
        yield getattr(module, f"{api.name}Request")
        yield getattr(module, f"{api.name}Response")


def built_source(message: type[Message]) -> str:
    """The module that is written for a message."""
    every = range(message.min_version, message.max_version + 1)
    newest = every[-1:]
    broker_decodes = message.__name__.endswith("Request")
    source = module_source(message, every if broker_decodes else newest, newest if broker_decodes else every)
    return f"{source}\n\nFINGERPRINT = {fingerprint(message)}\n"


def build(folder: Path) -> int:
    """Writes all modules into `folder`, in place of any that are there. Returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.py"):
        stale.unlink()
    (folder / "__init__.py").write_text('"""Written by kwire.protocol.codec.build; see there."""\n')
    count = 0
    for message in all_messages():
        (folder / f"{module_name(message)}.py").write_text(built_source(message))
        count += 1
    return count


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    print(f"{build(target)} modules written to {target}")
