"""Addresses as people write them."""

from __future__ import annotations

import pytest

from kwire.client.addresses import parse_address, parse_bootstrap, show_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9093", ("localhost", 9093)),
        ("localhost", ("localhost", 9092)),
        (" 10.0.0.1:1 ", ("10.0.0.1", 1)),
        ("[::1]:9092", ("::1", 9092)),
        ("[::1]", ("::1", 9092)),
    ],
)
def test_an_address(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        *("", ":9092", "host:", "host:port", "host:0", "host:65536", "host:-1", "host:٣"),
        *("[::1:9092", "a]:1", "[]:1", "host:" + "9" * 5000),
    ],
)
def test_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is no HOST:PORT"):
        parse_address(text)


def test_an_ipv6_address_needs_brackets() -> None:
    with pytest.raises(ValueError, match=r"is no HOST:PORT$"):
        parse_address("http://host:9092")
    with pytest.raises(ValueError, match="brackets"):
        parse_address("::1:9092")
    assert show_address("::1", 9092) == "[::1]:9092"
    assert show_address("host", 9092) == "host:9092"


def test_bootstrap() -> None:
    assert parse_bootstrap("a:1, b:2,") == [("a", 1), ("b", 2)]
    with pytest.raises(ValueError, match="no bootstrap address"):
        parse_bootstrap(" , ")
