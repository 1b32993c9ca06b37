"""Uuids as Kafka has them: 16 raw bytes on the wire and here, 22 characters of url-safe base64 in text."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

ZERO = bytes(16)
"""No uuid: what Kafka sends where a topic has no id."""

_FROM_URL_SAFE = str.maketrans("-_+/", "+/!!")
"""To the common base64, whose own two characters have no place in a uuid: `!` is refused."""


def to_text(uuid: bytes) -> str:
    """The 22 characters Kafka prints, as in `partition.metadata` and `kafka-topics --describe`."""
    return b2a_base64(uuid, newline=False)[:22].decode().replace("+", "-").replace("/", "_")


def from_text(text: str) -> bytes:
    """The 16 bytes of a uuid in text. ValueError if it is not one."""
    try:
        uuid = a2b_base64(text.translate(_FROM_URL_SAFE).rstrip("=") + "==", strict_mode=True)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a uuid: {error}") from None
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is not a uuid: {len(uuid)} bytes instead of 16")
    return uuid
