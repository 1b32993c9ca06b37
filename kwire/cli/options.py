"""What commands have in common: where the cluster is and a client for it, which errors are none, and how to print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kwire.cli.running import MISUSED, CommandError

if TYPE_CHECKING:
    from kwire.client.client import Client
    from kwire.protocol.errors import ErrorCode

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Given = TypeVar("Given")
Read = TypeVar("Read")

DEFAULT_BOOTSTRAP = "localhost:9092"
DEFAULT_TIMEOUT = 30
LONGEST_TIMEOUT = 2_000_000
"""Seconds: brokers are told ms in 32 bits."""


class Number(click.ParamType):
    """A whole number in a range. (Click's own says the range in every help.)"""

    name = "number"

    def __init__(self, least: int, greatest: int) -> None:
        self._least = least
        self._greatest = greatest

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if re.fullmatch("-?[0-9]{1,19}", str(value)) and self._least <= int(value) <= self._greatest:
            return int(value)
        self.fail(f"{value!r} is no number from {self._least} to {self._greatest}.", param, ctx)


class Seconds(click.ParamType):
    """Seconds up to LONGEST_TIMEOUT, parts of one too."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,9})?", str(value)) and float(value) <= LONGEST_TIMEOUT:
            return float(value)
        self.fail(f"{value!r} is no number from 0 to {LONGEST_TIMEOUT}.", param, ctx)


PARTITION = Number(0, 2**31 - 1)
COUNT = Number(1, 2**31 - 1)
REPLICAS = Number(1, 2**15 - 1)
"""What requests have room for."""


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
        type=Seconds(),
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

    addresses = read_option("--bootstrap", bootstrap, parse_bootstrap)
    return Client(TcpTransport(), addresses, client_id="kwire-cli", retry_timeout=timeout)


@contextmanager
def tolerating(code: ErrorCode, *, when: bool) -> Iterator[None]:
    """A KafkaError of this code is none `when` an option such as --if-exists says so."""
    from kwire.protocol.errors import KafkaError

    try:
        yield
    except KafkaError as error:
        if not (when and error.code is code):
            raise


def read_option(option: str, value: Given, read: Callable[[Given], Read]) -> Read:
    """What `read` makes of an option's value. CommandError where it raises ValueError."""
    try:
        return read(value)
    except ValueError as error:
        raise CommandError(f"{option}: {error}", MISUSED) from None


def key_values(pairs: Iterable[str], option: str) -> dict[str, str]:
    """`key=value` texts as a mapping. CommandError for one without `=`."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"{option} {pair}: must be KEY=VALUE", MISUSED)
        found[key.strip()] = value
    return found
