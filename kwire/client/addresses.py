"""Addresses as people write them: `bootstrap.servers`."""

from __future__ import annotations

DEFAULT_PORT = 9092

Address = tuple[str, int]


def parse_address(text: str) -> Address:
    """`HOST:PORT`, `HOST`, `[IPv6]:PORT`; the port is 9092 where none is given. ValueError says what is wrong."""
    text = text.strip()
    host, colon, port = text.rpartition(":")
    if text.endswith("]") or not colon:
        host, port = text, str(DEFAULT_PORT)
    if not host.startswith("[") and ":" in host:
        raise ValueError(f"{text!r} is no HOST:PORT (an IPv6 address needs brackets: [::1]:9092)")
    host = host.strip("[]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is no HOST:PORT")
    return host, int(port)


def parse_bootstrap(text: str) -> list[Address]:
    """Addresses separated by commas; at least one."""
    addresses = [parse_address(part) for part in text.split(",") if part.strip()]
    if not addresses:
        raise ValueError("no bootstrap address given: HOST:PORT, several separated by commas")
    return addresses


def show_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
