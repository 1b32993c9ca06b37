"""Formats of `kwire consume`, delimiters, JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.cli.formats import compile_format, to_json, unescape
from kwire.client.consumer import ConsumedRecord

RECORD = ConsumedRecord("orders", 3, 42, 1234, False, b"key", b"value", [("a", b"1"), ("b", None), ("a", b"\xff")])
EMPTY = ConsumedRecord("t", 0, 0, -1, True, None, None, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"%s\n", b"value\n"),
        ("%k=%s", b"key=value"),
        ("%t [%p] at %o: %T", b"orders [3] at 42: 1234"),
        ("%K %S", b"3 5"),
        ("%h", b"a=1,b=NULL,a=\xff"),
        ("%R%s", b"\0\0\0\x05value"),
        (r"\t\r\n\\\0\x41\x1", b"\t\r\n\\\0A\x01"),
        (r"100%% \\n", b"100% \\n"),
        ("", b""),
        ("ü%sü", "üvalueü".encode()),
    ],
)
def test_a_format(text: str, expected: bytes) -> None:
    assert compile_format(text)(RECORD) == expected


def test_null_is_empty_and_of_length_minus_one() -> None:
    assert compile_format("%k|%s|%K|%S|%h|%R")(EMPTY) == b"||-1|-1||\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("text", "complaint"), [("%z", "%z is not known"), ("%", "%"), (r"\q", r"\\q"), ("a\\", r"\\")]
)
def test_no_format(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        compile_format(text)


@given(st.text())
def test_plain_text_is_printed_as_it_is(text: str) -> None:
    assert compile_format(text.replace("%", "%%").replace("\\", "\\\\"))(RECORD) == text.encode(errors="surrogatepass")


@pytest.mark.parametrize(
    ("text", "expected"),
    [(r"\n", b"\n"), (":", b":"), (r"\x00", b"\0"), ("%s", b"%s"), ("", b""), ("\udcff\xfc", b"\xff\xc3\xbc")],
)
def test_a_delimiter(text: str, expected: bytes) -> None:
    assert unescape(text) == expected


def test_json() -> None:
    line = to_json(RECORD)
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "topic": "orders",
        "partition": 3,
        "offset": 42,
        "timestamp": 1234,
        "timestamp_type": "create",
        "key": "key",
        "value": "value",
        "headers": [["a", "1"], ["b", None], ["a", {"base64": "/w=="}]],
    }
    assert json.loads(to_json(EMPTY))["timestamp_type"] == "log_append"
