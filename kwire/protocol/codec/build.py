"""Writes the generated code out as modules: `python -m kwire.protocol.codec.build [FOLDER]`.

It runs when the package is built (see setup.py), and may be run again after a declaration has changed. The broker's
side of an API is written in every version, what a client needs in the newest; of all else, every version both ways.
What hardly anybody needs is written when it is first used, as is all of it where it was not built.
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

UNSPOKEN = frozenset(
    {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ALTER_PARTITION,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    }
)
"""The APIs that this version of kwire declares and serves to nobody."""

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


def built_messages() -> Iterator[type[Message]]:
    """Those whose code is written beforehand: it is faster to load, and takes room in the package."""
    rare = {message.__name__ for message in METADATA_RECORD_TYPES.values()}
    for key in UNSPOKEN:
        rare |= {f"{APIS[key].name}Request", f"{APIS[key].name}Response"}
    yield from (message for message in all_messages() if message.__name__ not in rare)


def built_source(message: type[Message]) -> str:
    """The module that is written for a message."""
    every = range(message.min_version, message.max_version + 1)
    newest = every[-1:]
    decoders = newest if message.__name__.endswith("Response") else every
    encoders = newest if message.__name__.endswith("Request") else every
    source = module_source(message, decoders, encoders)
    return f"{source}\n\nFINGERPRINT = {fingerprint(message)}\n"


def build(folder: Path) -> int:
    """Writes all modules into `folder`, in place of any others that are there. Returns how many.

    What is there already stays as it is: its bytecode is good, and somebody may be reading it.
    """
    sources = {module_name(message): built_source(message) for message in built_messages()}
    files = {folder / f"{name}.py": source for name, source in sources.items()}
    files[folder / "__init__.py"] = '"""Written by kwire.protocol.codec.build; see there."""\n'
    folder.mkdir(parents=True, exist_ok=True)
    for stale in set(folder.glob("*.py")) - files.keys():
        stale.unlink()
    for file, source in files.items():
        if not file.exists() or file.read_text() != source:
            file.write_text(source)
    return len(sources)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    print(f"{build(target)} modules written to {target}")
