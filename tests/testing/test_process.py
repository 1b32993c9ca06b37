"""BrokerProcess around programs that behave as a broker may."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.testing.process import BrokerError, BrokerProcess

SERVES = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("serving", file=sys.stderr, flush=True)
print("kwire ready on 127.0.0.1:4711", flush=True)
signal.sigwait([signal.SIGTERM])
print("stopped", file=sys.stderr)
"""
FAILS = "import sys; print('kwire: no such setting', file=sys.stderr); sys.exit(3)"
SAYS_SOMETHING_ELSE = "print('hello', flush=True); import time; time.sleep(60)"
IS_SILENT = "import time; time.sleep(60)"
IGNORES_SIGTERM = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("kwire ready on 127.0.0.1:4711", flush=True)
signal.pause()
"""
SHOWS_ENVIRONMENT = """
import os, sys, signal
print(sorted(key for key in os.environ if key.startswith("KWIRE_")), file=sys.stderr, flush=True)
print("kwire ready on [::1]:4711", flush=True)
signal.pause()
"""


@pytest.fixture
def broker_that() -> Iterator[Callable[..., BrokerProcess]]:
    """Makes BrokerProcess objects that run a program instead of a broker."""
    made: list[BrokerProcess] = []

    def make(program: str, *arguments: Any, **options: Any) -> BrokerProcess:
        class Pretended(BrokerProcess):
            def command(self) -> list[str]:
                return [sys.executable, "-c", program]

        made.append(Pretended(*arguments, **options))
        return made[-1]

    yield make
    for broker in made:
        broker.kill()
        broker.close()


def test_start_and_stop(broker_that: Callable[..., BrokerProcess]) -> None:
    broker = broker_that(SERVES)
    with broker:
        assert (broker.host, broker.port) == ("127.0.0.1", 4711)
        assert str(broker) == broker.bootstrap == "127.0.0.1:4711"
        assert broker.running
        with pytest.raises(BrokerError, match="already runs"):
            broker.start()
        broker.stop()
        assert not broker.running
        assert broker.exit_code == 0
        assert broker.log_tail().splitlines() == ["serving", "stopped"]
        assert broker.log_tail(lines=1) == "stopped"
        folder = broker.log.parent
    assert not folder.exists()


def test_kill_and_restart(broker_that: Callable[..., BrokerProcess]) -> None:
    broker = broker_that(SERVES).start()
    first = broker.pid
    broker.kill()
    assert broker.exit_code == -9
    broker.restart()

    assert broker.running
    assert broker.pid != first
    broker.restart()
    assert broker.log_tail().splitlines() == ["serving", "serving", "stopped", "serving"]


@pytest.mark.parametrize(
    ("program", "words"),
    [(FAILS, "exit code 3\nkwire: no such setting"), (SAYS_SOMETHING_ELSE, "said 'hello'"), (IS_SILENT, "nothing")],
)
def test_a_broker_that_does_not_start(broker_that: Callable[..., BrokerProcess], program: str, words: str) -> None:
    broker = broker_that(program)
    with pytest.raises(BrokerError, match=words):
        broker.start(timeout=0.5 if program is IS_SILENT else 20)
    assert not broker.running


def test_a_broker_that_does_not_stop(broker_that: Callable[..., BrokerProcess]) -> None:
    broker = broker_that(IGNORES_SIGTERM).start()
    with pytest.raises(BrokerError, match="did not stop"):
        broker.stop(timeout=0.1)
    assert not broker.running


def test_the_environment_of_the_tests_is_not_the_brokers(
    broker_that: Callable[..., BrokerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KWIRE_NUM_PARTITIONS", "7")
    broker = broker_that(SHOWS_ENVIRONMENT, environment={"KWIRE_LOG_RETENTION_MS": "1"}).start()

    assert broker.bootstrap == "[::1]:4711"
    assert broker.log_tail() == "['KWIRE_LOG_RETENTION_MS']"


def test_the_command_line(tmp_path: Path) -> None:
    broker = BrokerProcess(
        {"num.partitions": 3, "auto.create.topics.enable": False}, data_dir=tmp_path, arguments=["x"]
    )
    own = BrokerProcess({"listeners": "INSIDE://:0"})
    try:
        serve = [sys.executable, "-m", "kwire", "serve"]
        assert broker.command() == [
            *serve,
            *("--data-dir", str(tmp_path), "--listen", "127.0.0.1:0"),
            *("--set", "num.partitions=3", "--set", "auto.create.topics.enable=false", "x"),
        ]
        assert own.command() == [*serve, "--data-dir", str(own.data_dir), "--set", "listeners=INSIDE://:0"]
    finally:
        broker.close()
        own.close()
    assert os.path.isdir(tmp_path)
