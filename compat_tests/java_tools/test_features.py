"""FeatureCommand (`kafka-features.sh`): levels described, raised, lowered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from compat_tests.java_tools.tools import JavaTools

pytestmark = pytest.mark.xdist_group("java")

Settled = Callable[[Callable[[], None]], None]
NEWEST = {"group.version": 1, "transaction.version": 2}


class Level(NamedTuple):
    """A line of `describe`."""

    least: str
    greatest: str
    finalized: str


def described(tools: JavaTools) -> dict[str, Level]:
    lines = tools.run("FeatureCommand", "describe").lines
    fields = [dict(re.findall(r"(\w+): (\S+)", line)) for line in lines]
    return {
        each["Feature"]: Level(each["SupportedMinVersion"], each["SupportedMaxVersion"], each["FinalizedVersionLevel"])
        for each in fields
    }


@pytest.fixture
def newest_again(java_tools: JavaTools, settled: Settled) -> Iterator[None]:
    """Other tests need the levels that a broker begins with."""
    yield
    features = [word for name, level in NEWEST.items() for word in ("--feature", f"{name}={level}")]
    java_tools.run("FeatureCommand", "upgrade", *features)

    def at_the_newest() -> None:
        levels = described(java_tools)
        assert {name: levels[name].finalized for name in NEWEST} == {name: str(level) for name, level in NEWEST.items()}

    settled(at_the_newest)


def test_levels_are_described(java_tools: JavaTools) -> None:
    levels = described(java_tools)
    assert levels["group.version"] == ("0", "1", "1")
    assert levels["transaction.version"] == ("0", "2", "2")


@pytest.mark.usefixtures("newest_again")
def test_levels_go_down_and_up(java_tools: JavaTools, settled: Settled) -> None:
    def at(group: str, transaction: str) -> Callable[[], None]:
        def check() -> None:
            levels = described(java_tools)
            assert (levels["group.version"].finalized, levels["transaction.version"].finalized) == (group, transaction)

        return check

    down = ["--feature", "transaction.version=1"]
    tried = java_tools.run("FeatureCommand", "downgrade", *down, "--dry-run")
    assert "transaction.version can be downgraded to 1." in tried.output
    at("1", "2")()
    done = java_tools.run("FeatureCommand", "downgrade", *down)
    assert "transaction.version was downgraded to 1." in done.output
    settled(at("1", "1"))
    done = java_tools.run("FeatureCommand", "disable", "--feature", "group.version")
    assert "group.version was disabled." in done.output
    settled(at("0", "1"))
    done = java_tools.run("FeatureCommand", "upgrade", "--feature", "group.version=1")
    assert "group.version was upgraded to 1." in done.output
    settled(at("1", "1"))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["upgrade", "--feature", "transaction.version=3"], "only supports versions 0-2"),
        (["upgrade", "--feature", "transaction.version=1"], "Can't downgrade the version of this feature"),
        (["downgrade", "--feature", "nonsense=1"], "does not support this feature."),
    ],
)
def test_what_cannot_be_is_said(java_tools: JavaTools, arguments: list[str], reason: str) -> None:
    result = java_tools.run("FeatureCommand", *arguments, exit_code=1)
    assert reason in result.output + result.errors
    levels = described(java_tools)
    assert {name: levels[name].finalized for name in NEWEST} == {name: str(level) for name, level in NEWEST.items()}
