"""What commands have in common: where the cluster is, and a client for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli.running import MISUSED, CommandError

if TYPE_CHECKING:
    from kwire.client.client import Client

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT,...",
        help="Brokers to ask for the cluster; any Kafka cluster will do.",
    ),
]

Timeout = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0, help="How long to retry what fails in passing."),
]

DEFAULT_BOOTSTRAP = "localhost:9092"
DEFAULT_TIMEOUT = 30.0


def open_client(bootstrap: str, timeout: float) -> Client:
    """A client for `async with`. CommandError where the address is none."""
    from kwire.client.addresses import parse_bootstrap
    from kwire.client.client import Client
    from kwire.ports.tcp import TcpTransport

    try:
        addresses = parse_bootstrap(bootstrap)
    except ValueError as error:
        raise CommandError(f"--bootstrap: {error}", MISUSED) from None
    return Client(TcpTransport(), addresses, client_id="kwire-cli", retry_timeout=timeout)


def key_values(pairs: Iterable[str], option: str) -> dict[str, str]:
    """`key=value` texts as a mapping. CommandError for one without `=`."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"{option} {pair}: must be KEY=VALUE", MISUSED)
        found[key.strip()] = value
    return found
