"""What every job refuses before it starts a Spark."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from spark_jobs import mirror
from spark_jobs.tests.jobs import run


@pytest.mark.parametrize("option", ["-b", "--to"])
@pytest.mark.parametrize("servers", ["", " ", ",", "localhost", "localhost:9092,other", "local host:9092"])
def test_brokers_have_a_host_and_a_port(option: str, servers: str, tmp_path: Path) -> None:
    with pytest.raises(click.BadParameter, match=re.escape(f"{servers!r} is not HOST:PORT[,...]")):
        run(mirror.main, "source", "target", option, servers, "--checkpoint", tmp_path)
