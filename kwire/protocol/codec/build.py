"""Writes the generated code out as modules: `python -m kwire.protocol.codec.build [FOLDER]`.

It runs when the package is built (see setup.py), and may be run again after a declaration has changed. The broker's
side of an API is written in every version, what a client needs in the newest; of all else, every version both ways.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec.functions import fingerprint, module_name
from kwire.protocol.codec.generate import module_source
from kwire.protocol.consumer_protocol.assignment import ConsumerProtocolAssignment
from kwire.protocol.consumer_protocol.subscription import ConsumerProtocolSubscription
from kwire.protocol.coordinator_records.record_types import GROUP_RECORD_TYPES, TRANSACTION_RECORD_TYPES
from kwire.protocol.metadata_records.record_types import METADATA_RECORD_TYPES
from kwire.protocol.remote_log_records.serde import RECORD_TYPES as REMOTE_LOG_RECORD_TYPES
from kwire.protocol.schema import Message

FOLDER = Path(__file__).with_name("_generated")


def api_messages() -> Iterator[type[Message]]:
    """Every request and response, in order of their API keys."""
    for key, api in APIS.items():
        module = import_module(f"kwire.protocol.messages.{ApiKey(key).name.lower()}")
        yield getattr(module, f"{api.name}Request")
        yield getattr(module, f"{api.name}Response")


def all_messages() -> Iterator[type[Message]]:
    """Every message that is declared."""
    yield from api_messages()
    for record_types in (GROUP_RECORD_TYPES, TRANSACTION_RECORD_TYPES):
        for record_type in record_types.values():
            yield from record_type
    yield from METADATA_RECORD_TYPES.values()
    yield from REMOTE_LOG_RECORD_TYPES.values()
    yield ConsumerProtocolSubscription
    yield ConsumerProtocolAssignment


def built_source(message: type[Message]) -> str:
    """The module that is written for a message."""
    every = range(message.min_version, message.max_version + 1)
    newest = every[-1:]
    decoders = newest if message.__name__.endswith("Response") else every
    encoders = newest if message.__name__.endswith("Request") else every
    source = module_source(message, decoders, encoders)
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
