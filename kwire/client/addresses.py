"""Addresses as people write them: `bootstrap.servers`."""

from __future__ import annotations

import re

DEFAULT_PORT = 9092

Address = tuple[str, int]

_IPV6 = re.compile(r"[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f.:]*")
_ADDRESS = re.compile(r"(?:\[([^][]+)\]|([^][:]+))(?::([0-9]{1,5}))?")


def parse_address(text: str) -> Address:
    """`HOST:PORT`, `HOST`, `[IPv6]:PORT`; the port is 9092 where none is given. ValueError says what is wrong."""
    text = text.strip()
    match = _ADDRESS.fullmatch(text)
    if match is None:
        hint = " (an IPv6 address needs brackets: [::1]:9092)" if _IPV6.fullmatch(text) else ""
        raise ValueError(f"{text!r} is no HOST:PORT{hint}")
    port = int(match[3] or DEFAULT_PORT)
    if not 0 < port < 65536:
        raise ValueError(f"{text!r} is no HOST:PORT: a port is 1 to 65535")
    return match[1] or match[2], port


def parse_bootstrap(text: str) -> list[Address]:
    """Addresses separated by commas; at least one."""
    addresses = [parse_address(part) for part in text.split(",") if part.strip()]
    if not addresses:
        raise ValueError("no bootstrap address given: HOST:PORT, several separated by commas")
    return addresses


def show_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
