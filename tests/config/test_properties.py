"""The properties parser against Java's own: java-properties.jsonl holds texts and what java.util.Properties reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.config.properties import PropertiesError, parse_properties

CASES = [json.loads(line) for line in (Path(__file__).parent / "java-properties.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[repr(text) for text, _ in CASES])
def test_reads_what_java_reads(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "\n\na=\\uzzzz"])
def test_a_bad_escape_names_its_line(text: str) -> None:
    with pytest.raises(PropertiesError, match=f"^line {text.count(chr(10)) + 1}: "):
        parse_properties(text)


def escape(text: str, *, key: bool) -> str:
    """As Java's Properties.store writes it."""
    out = []
    for position, character in enumerate(text):
        if character == " ":
            out.append("\\ " if key or position == 0 else " ")
        elif character in "\t\n\r\f":
            out.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[character])
        elif character in "=:#!\\":
            out.append("\\" + character)
        elif " " < character < "\x7f":
            out.append(character)
        else:
            units = character.encode("utf-16-be")
            out += [f"\\u{units[at]:02X}{units[at + 1]:02x}" for at in range(0, len(units), 2)]
    return "".join(out)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=12), max_size=6))
def test_reads_back_what_java_would_write(values: dict[str, str]) -> None:
    lines = [f"{escape(name, key=True)}={escape(value, key=False)}" for name, value in values.items()]
    assert parse_properties("#comment\n" + "\n".join(lines) + "\n") == values


@given(st.text(alphabet="ab=: \\\t\n\r#!", max_size=40))
def test_any_text_is_read(text: str) -> None:
    for name, value in parse_properties(text).items():
        assert "\r" not in name + value
        assert "\n" not in name + value
