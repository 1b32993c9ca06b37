"""A step measured on two brokers, in turn."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import kwire
from benchmarks.disturbance import undisturbed
from benchmarks.report import Pairs
from benchmarks.steps import Figures, StartBroker, Step
from jvm.apache_kafka import ApacheKafka
from kwire.testing.process import BrokerProcess

_CODECS = "kwire/protocol/codec/_generated"


def run(step: Step, pairs: int, other: StartBroker | None = None) -> Pairs:
    """Beside Apache Kafka, or what `other` makes; the order is swapped from pair to pair."""
    result = Pairs(step.name, version=version(), measured=date.today().isoformat())
    other = other or make_apache_kafka
    if (prepare := step.prepare) is not None:
        _, disturbed = undisturbed(lambda: prepare(other))
        result.disturbed += disturbed
    for number in range(pairs):
        sides: list[tuple[list[Figures], StartBroker]] = [
            (result.kwire, make_kwire),
            (result.other, other),
        ]
        for figures, make in sides if number % 2 == 0 else reversed(sides):
            found, disturbed = undisturbed(lambda make=make: step.measure(make))  # type: ignore[misc]
            figures.append(found)
            result.disturbed += disturbed
        print(f"{step.name}: pair {number + 1} of {pairs}", file=sys.stderr, flush=True)
    return result


def version() -> str:
    """Of the kwire that is measured: as git names what is checked out, or else the package's own."""
    asked = ["git", "-C", str(Path(kwire.__file__).parent), "describe", "--always", "--dirty", "--tags"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return kwire.__version__


def make_kwire() -> BrokerProcess:
    return BrokerProcess()


def make_apache_kafka() -> ApacheKafka:
    peer = ApacheKafka()
    peer.format()
    return peer


def version_of(folder: Path) -> Callable[[], BrokerProcess]:
    """Makes brokers of the kwire whose source is in `folder`, a checkout of another version.

    ValueError where there is none, or it has not written its codecs: it would make them while it is measured.
    """
    # Of the folder that `python -m` is called in Python would take kwire first.
    environment = {"PYTHONPATH": str(folder.resolve()), "PYTHONSAFEPATH": "1"}
    asked = [sys.executable, "-c", "import kwire; print(kwire.__file__)"]
    found = subprocess.run(asked, env=os.environ | environment, capture_output=True, text=True).stdout.strip()
    if not Path(found).is_relative_to(folder.resolve()):
        raise ValueError(f"{folder} has no kwire")
    if not (folder / _CODECS).is_dir():
        raise ValueError(f"{folder} has no codecs: run `python -m kwire.protocol.codec.build {_CODECS}` there first")
    return lambda: BrokerProcess(environment=environment)
