"""A Java program that uses the stock clients: each of its cases is a test here.

The program runs once, in one JVM, and says of each case whether it passed. Its sources are in src/, and a case is a
method there with a @Case annotation.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from jvm import apache_kafka, programs
from kwire.testing.process import BrokerProcess

pytestmark = pytest.mark.xdist_group("java")

SOURCES = sorted(Path(__file__).with_name("src").glob("*.java"))
CASES = [name for source in SOURCES for name in re.findall(r'^ +@Case\("(.+)"\)$', source.read_text(), re.MULTILINE)]
TIMEOUT = 240
"""Seconds for the whole program; it takes less than a minute."""


@pytest.fixture(scope="module")
def outcomes(kwire_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """What went wrong in each case: a stack trace, or None."""
    program = programs.command(SOURCES, apache_kafka.class_path(), tmp_path_factory.mktemp("java"))
    command = [*program, "Main", kwire_broker.bootstrap]
    try:
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=TIMEOUT).stdout
    except subprocess.TimeoutExpired as expired:
        printed = expired.stdout or b""
    results = [json.loads(line) for line in printed.splitlines()]
    return {result["case"]: result["error"] for result in results}


@pytest.mark.parametrize("case", CASES)
def test_case(outcomes: dict[str, str | None], case: str) -> None:
    error = outcomes.get(case, "the program did not come to this case")
    if error:
        pytest.fail(error, pytrace=False)


def test_every_case_is_a_test_of_its_own(outcomes: dict[str, str | None]) -> None:
    assert sorted(outcomes) == sorted(CASES)
