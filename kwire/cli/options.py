"""What commands have in common: where the cluster is and a client for it, and how to print."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kwire.cli.running import MISUSED, CommandError

if TYPE_CHECKING:
    from kwire.client.client import Client

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

DEFAULT_BOOTSTRAP = "localhost:9092"
DEFAULT_TIMEOUT = 30.0


def cluster_options(command: Decorated) -> Decorated:
    """Gives a command --bootstrap and --timeout, for `open_client`."""
    bootstrap = click.option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT,...",
        default=DEFAULT_BOOTSTRAP,
        help="Brokers to ask for the cluster; any Kafka cluster will do.",
    )
    timeout = click.option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0),
        default=DEFAULT_TIMEOUT,
        help="How long to retry what fails in passing.",
    )
    return bootstrap(timeout(command))


def format_option(help: str) -> Callable[[Decorated], Decorated]:
    """Gives a command --format, as the parameter `as_json`."""
    return click.option(
        "--format",
        "as_json",
        type=click.Choice(["text", "json"]),
        default="text",
        callback=lambda context, parameter, value: value == "json",
        help=help,
    )


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
