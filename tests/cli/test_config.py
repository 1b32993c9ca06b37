"""`kwire config --describe`."""

from __future__ import annotations

import json

import pytest

from kwire.cli import output
from kwire.config.keys import BROKER_KEYS
from kwire.config.topic_keys import TOPIC_KEYS


def test_every_key(kwire) -> None:
    lines = kwire("config", "--describe").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == sorted(BROKER_KEYS)
    assert all(line.count("\t") == 5 for line in lines)


def test_some_keys_of_topics_as_json(kwire) -> None:
    found = json.loads(kwire("config", "--describe", "--topic", "--format", "json", "retention.ms").stdout)
    assert {key["name"] for key in found} == {name for name in TOPIC_KEYS if "retention.ms" in name}
    described = next(key for key in found if key["name"] == "retention.ms")
    assert (described["type"], described["default"], described["status"]) == ("long", "604800000", "supported")


def test_keys_of_groups(kwire) -> None:
    lines = kwire("config", "--describe", "--group", "session.timeout").stdout.splitlines()
    assert [line.split("\t")[:4] for line in lines] == [
        ["consumer.session.timeout.ms", "int", "45000", "supported"],
        ["share.session.timeout.ms", "int", "45000", "later"],
        ["streams.session.timeout.ms", "int", "45000", "later"],
    ]
    assert kwire("config", "--describe", "--group", "--topic").exit_code == 2


def test_no_such_key(kwire) -> None:
    result = kwire("config", "--describe", "retention.weeks")
    assert (result.exit_code, result.stderr) == (1, "kwire: no broker configuration key contains 'retention.weeks'\n")


def test_a_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["a", 1, None], ["[b]", 22, "x"]]
    output.show_table(["NAME", ">COUNT", "WHAT"], rows)
    assert capsys.readouterr().out == "a\t1\t\n[b]\t22\tx\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    output.show_table(["NAME", ">COUNT", "WHAT"], rows)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["NAME  COUNT  WHAT", "a         1", "[b]      22  x"]


def test_a_table_wider_than_the_terminal_is_wrapped() -> None:
    rows = [["name", "1", "so long a text"], ["x", "22", ""]]
    assert output.table_lines(["NAME", ">N", "WHAT"], rows, 18) == [
        "NAME   N  WHAT",
        "name   1  so long",
        "          a text",
        "x     22",
    ]


@pytest.mark.parametrize("space", range(1, 30))
def test_a_wrapped_table_loses_nothing(space: int) -> None:
    rows = [["name", "1", "so long a text"], ["x", "22", ""]]
    lines = output.table_lines(["NAME", ">N", "WHAT"], rows, space)
    assert sorted("".join(lines).replace(" ", "")) == sorted("NAMENWHATname1solongatextx22")
    assert max(map(len, lines)) <= max(space, len("N  N  W"))
