"""kcat -X transactional.id: a run is a transaction, committed with the end of its input."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.driver import TIMEOUT
from compat_tests.kcat.driver import KcatDriver
from compat_tests.kcat.install import kcat_program

LINES = [f"{number}".ljust(3000, ".") for number in range(3)]
"""Long ones, since kcat takes up its input a KiB at a time."""


@pytest.fixture
def kcat(kwire_broker: Any) -> KcatDriver:
    return KcatDriver(kwire_broker.bootstrap, kcat_program())


def read(kcat: KcatDriver, topic: str, isolation: str) -> list[str]:
    """The values that kcat shows until it comes to the end of partition 0."""
    where = ["-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q"]
    return kcat.run(*where, "-X", f"isolation.level={isolation}").stdout.splitlines()


@pytest.fixture
def transactional_id(new_name: Callable[[], str]) -> str:
    return new_name()


@pytest.fixture
def producing(kcat: KcatDriver, kwire_topic: str, transactional_id: str) -> Iterator[subprocess.Popen[bytes]]:
    """A kcat that has sent the first of LINES at least, and waits for more."""
    command = [kcat_program(), "-b", kcat.bootstrap, "-P", "-t", kwire_topic, "-p", "0"]
    options = ["-X", f"transactional.id={transactional_id}", "-X", "linger.ms=0"]
    process = subprocess.Popen([*command, *options], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdin is not None
        process.stdin.write("".join(f"{line}\n" for line in LINES).encode())
        process.stdin.flush()
        deadline = time.monotonic() + TIMEOUT
        while LINES[0] not in read(kcat, kwire_topic, "read_uncommitted"):
            assert time.monotonic() < deadline, "the first line does not come"
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_end_of_the_input_commits(kcat: KcatDriver, kwire_topic: str, producing: subprocess.Popen[bytes]) -> None:
    assert read(kcat, kwire_topic, "read_committed") == []
    _, errors = producing.communicate(timeout=TIMEOUT)
    assert producing.returncode == 0, errors
    assert read(kcat, kwire_topic, "read_committed") == LINES


def test_the_next_run_aborts_what_an_interrupted_one_left(
    kcat: KcatDriver, kwire_topic: str, transactional_id: str, producing: subprocess.Popen[bytes]
) -> None:
    producing.send_signal(signal.SIGINT)
    producing.communicate(timeout=TIMEOUT)
    assert read(kcat, kwire_topic, "read_committed") == []
    where = ["-P", "-t", kwire_topic, "-p", "0"]
    kcat.run(*where, "-X", f"transactional.id={transactional_id}", input=b"after")
    assert read(kcat, kwire_topic, "read_committed") == ["after"]
    assert LINES[0] in read(kcat, kwire_topic, "read_uncommitted")
