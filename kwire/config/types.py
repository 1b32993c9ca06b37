"""The types of config values: how text becomes a value and a value text, as Apache Kafka's ConfigDef does it."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any

from kwire.config.errors import ConfigError


class Type(IntEnum):
    """A config's type; the numbers are those of DescribeConfigs (`config_type`)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Password:
    """A secret: it does not show in logs and tracebacks."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return "[hidden]"


_INTEGER_BITS = {Type.INT: 32, Type.SHORT: 16, Type.LONG: 64}
_INTEGER = re.compile(r"([+-]?)([^\D\U00010000-\U0010ffff]+)")
_NO_NUMBER = re.compile(r"[+-]?(?:NaN|Infinity)")
_DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?", re.ASCII)
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_TRIMMED = "".join(map(chr, range(ord(" ") + 1)))


def trim(text: str) -> str:
    """The text without blanks and control characters around it, which is not what Unicode calls white space."""
    return text.strip(_TRIMMED)


def parse_integer(text: str, bits: int) -> int | None:
    """A number of that many bits as Java's Integer.parseInt reads it, None for anything else.

    Its digits may be of any script (full-width ones as well), but one UTF-16 unit each.
    """
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, digits = match.groups()
    limit = 1 << bits - 1
    number = 0
    for digit in digits:
        number = number * 10 + int(digit)
        if number > limit:
            return None
    if sign == "-":
        return -number
    return number if number < limit else None


def parse(name: str, kind: Type, text: str) -> Any:
    """The value that `text` means, as Apache Kafka reads it. Blanks around it do not count.

    BOOLEAN gives bool, the integers int, DOUBLE float, LIST a tuple of str, PASSWORD a Password, all else str. Raises
    ConfigError.
    """
    given, text = text, trim(text)
    if kind in _INTEGER_BITS:
        number = parse_integer(text, _INTEGER_BITS[kind])
        if number is None:
            raise invalid(name, given, f"Not a number of type {kind.name}")
        return number
    if kind is Type.BOOLEAN:
        upper = text.upper()
        if upper not in ("TRUE", "FALSE"):
            raise invalid(name, given, "Expected value to be either true or false")
        return upper == "TRUE"
    if kind is Type.LIST:
        return tuple(_COMMA.split(text)) if text else ()
    if kind is Type.DOUBLE:
        double = _double(text)
        if double is None:
            raise invalid(name, given, "Not a number of type DOUBLE")
        return double
    if kind is Type.PASSWORD:
        return Password(text)
    return text


def _double(text: str) -> float | None:
    """As Java's Double.parseDouble."""
    if _NO_NUMBER.fullmatch(text):
        return float(text)
    if match := _DECIMAL.fullmatch(text):
        return float(match[1])
    if match := _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return float("-inf" if text.startswith("-") else "inf")
    return None


def to_text(value: Any) -> str | None:
    """The value as text that `parse` reads back; None stays None, a Password shows itself."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, Password):
        return value.value
    return str(value)


def _double_text(value: float) -> str:
    """As Java's Double.toString: the exponent form below 0.001 and from ten million on."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    digits = repr(value).lstrip("-")
    mantissa, _, exponent = digits.partition("e")
    whole, _, fraction = mantissa.partition(".")
    power = int(exponent or 0) + len(whole) - 1
    significant = (whole + fraction).lstrip("0")
    if whole == "0":
        power = int(exponent or 0) - (len(fraction) - len(fraction.lstrip("0")) + 1)
    significant = significant.rstrip("0") or "0"
    return f"{'-' if value < 0 else ''}{significant[0]}.{significant[1:] or '0'}E{power}"


def invalid(name: str, value: Any, reason: str) -> ConfigError:
    """The error for a value that cannot stand, in Apache Kafka's words."""
    return ConfigError(f"Invalid value {_one_line(value)} for configuration {name}: {reason}")


def _one_line(value: Any) -> str:
    if isinstance(value, tuple):
        text = "[" + ", ".join(value) + "]"
    else:
        text = str(value if isinstance(value, Password) else to_text(value))
    return text.replace("\n", "\\n").replace("\r", "\\r")
