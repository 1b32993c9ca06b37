"""LogDirsCommand, and ReassignPartitionsCommand, which moves partitions between the log dirs of a broker."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests import cases
from compat_tests.confluent.driver import ConfluentAdmin, ConfluentDriver
from compat_tests.java_tools.tools import JavaTools, ToolResult
from kwire.testing.process import BrokerProcess

pytestmark = pytest.mark.xdist_group("java")

TOPIC = "moved"
TIMEOUT = 60.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(data_dir=tmp_path / "one", arguments=["--data-dir", str(tmp_path / "two")]) as broker:
        yield broker


def run(tools: JavaTools, broker: BrokerProcess, tool: str, *arguments: str) -> ToolResult:
    return tools.run(tool, "--bootstrap-server", broker.bootstrap, *arguments, bootstrap=False)


def log_dirs(tools: JavaTools, broker: BrokerProcess) -> dict[str, dict[str, Any]]:
    """What LogDirsCommand says of each dir, by its folder's name."""
    told = run(tools, broker, "LogDirsCommand", "--describe", "--topic-list", TOPIC).lines[-1]
    (described,) = json.loads(told)["brokers"]
    return {Path(found["logDir"]).name: found for found in described["logDirs"]}


def test_a_partition_is_moved(java_tools: JavaTools, broker: BrokerProcess, tmp_path: Path) -> None:
    ConfluentAdmin(broker.bootstrap).create_topic(TOPIC)
    driver = ConfluentDriver(broker.bootstrap)
    sent = cases.numbered(3000, size=1000)
    driver.produce(TOPIC, sent)
    described = log_dirs(java_tools, broker)
    (there,) = described["one"]["partitions"]
    assert (there["partition"], there["offsetLag"], there["isFuture"]) == (f"{TOPIC}-0", 0, False)
    assert there["size"] > 3_000_000
    assert described["one"]["error"] is described["two"]["error"] is None

    wanted = tmp_path / "wanted.json"
    partition = {"topic": TOPIC, "partition": 0, "replicas": [1], "log_dirs": [str(tmp_path / "two")]}
    wanted.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    arguments = ["--reassignment-json-file", str(wanted)]
    limited = ["--replica-alter-log-dirs-throttle", "1000000"]
    begun = run(java_tools, broker, "ReassignPartitionsCommand", "--execute", *limited, *arguments)
    assert f"Successfully started partition reassignment for {TOPIC}-0" in begun.output
    begins = f"Successfully started moving log directory to {tmp_path / 'two'} for replica {TOPIC}-0 with broker 1"
    assert begins in begun.output
    under_way = log_dirs(java_tools, broker)
    (future,) = under_way["two"]["partitions"]
    if future["isFuture"]:
        assert (future["partition"], len(under_way["one"]["partitions"])) == (f"{TOPIC}-0", 1)
        verified = run(java_tools, broker, "ReassignPartitionsCommand", "--verify", "--preserve-throttles", *arguments)
        assert f"Reassignment of partition {TOPIC}-0 is completed" in verified.output

    deadline = time.monotonic() + TIMEOUT
    place = len(sent)
    while future["isFuture"]:
        assert time.monotonic() < deadline
        assert driver.produce(TOPIC, cases.numbered(1, size=1000)) == [place]
        place += 1
        (future,) = log_dirs(java_tools, broker)["two"]["partitions"]
    verified = run(java_tools, broker, "ReassignPartitionsCommand", "--verify", *arguments)
    assert f"Reassignment of replica {TOPIC}-0-1 completed successfully." in verified.output
    assert "Clearing broker-level throttles" in verified.output
    described = log_dirs(java_tools, broker)
    assert described["one"]["partitions"] == []
    assert [record.value for record in driver.consume(TOPIC, len(sent))] == [record.value for record in sent]
    broker.restart()
    assert [found["partition"] for found in log_dirs(java_tools, broker)["two"]["partitions"]] == [f"{TOPIC}-0"]
    assert ConfluentDriver(broker.bootstrap).bounds(TOPIC).end == place
