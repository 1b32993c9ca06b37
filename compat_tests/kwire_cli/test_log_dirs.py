"""`kwire log dirs` and `kwire log move` against a broker with two log dirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.cases import numbered
from compat_tests.confluent.driver import ConfluentAdmin
from compat_tests.kwire_cli.cli import Cli
from compat_tests.kwire_client.driver import KwireDriver
from kwire.testing.process import BrokerProcess


@pytest.fixture(scope="module")
def dirs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("dirs")
    return str(root / "one"), str(root / "two")


@pytest.fixture(scope="module")
def cli(dirs: tuple[str, str]) -> Iterator[Cli]:
    """For a broker with these log dirs and a topic, orders, of three partitions."""
    with BrokerProcess(data_dir=dirs[0], arguments=["--data-dir", dirs[1]]) as broker:
        cli = Cli(broker.bootstrap)
        cli("topics", "create", "orders", "--partitions", "3")
        KwireDriver(broker.bootstrap).produce("orders", numbered(300, size=1000))
        yield cli


def partitions(cli: Cli) -> dict[str, int]:
    """By dir."""
    return {row[1]: int(row[3]) for row in (line.split("\t") for line in cli.lines("log", "dirs"))}


def test_moving_to_and_fro(cli: Cli, dirs: tuple[str, str]) -> None:
    one, two = dirs
    assert partitions(cli) == {one: 2, two: 1}
    assert cli.lines("log", "move", "orders", two, "--partition", "0") == []
    assert partitions(cli) == {one: 1, two: 2}
    cli("log", "move", "orders", f"{one}/")
    first, second = cli.json("log", "dirs")
    assert (first["broker"], first["dir"], first["state"], first["partitions"]) == (1, one, "online", 3)
    assert first["bytes"] > 300_000
    assert first["total_bytes"] >= first["usable_bytes"] > 0
    assert (second["dir"], second["partitions"], second["bytes"], second["moving_in"]) == (two, 0, 0, [])


def test_a_move_that_is_begun_and_ended(cli: Cli, dirs: tuple[str, str]) -> None:
    one, two = dirs
    rate = ("set", "replica.alter.log.dirs.io.max.bytes.per.second", "0")
    ConfluentAdmin(cli.bootstrap).change_configs("broker", "1", [rate])
    cli("log", "move", "orders", two, "--no-wait")
    (_, coming) = cli.json("log", "dirs")
    assert {each["topic"] for each in coming["moving_in"]} == {"orders"}
    cli("log", "move", "orders", one, "--no-wait")
    (_, coming) = cli.json("log", "dirs")
    assert coming["moving_in"] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["orders", "/nowhere"], "no broker has the log dir /nowhere"),
        (["orders", "/nowhere", "--broker", "1"], "LOG_DIR_NOT_FOUND"),
        (["absent", "{two}"], "no partition of 'absent'"),
        (["orders", "{two}", "--partition", "7"], "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_what_can_not_be_moved(cli: Cli, dirs: tuple[str, str], arguments: list[str], told: str) -> None:
    done = cli("log", "move", *(word.format(two=dirs[1]) for word in arguments), code=1)
    assert told in done.stderr.decode()
