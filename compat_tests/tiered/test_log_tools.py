"""`kwire log` tells what of a topic lies in remote storage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from compat_tests.tiered.tier import copies, create, in_directory, produce, settings, until, until_tiered
from kwire.testing.process import BrokerProcess


def kwire(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kwire", *arguments], stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    return done.stdout


def remote_lines(report: str) -> list[dict[str, object]]:
    return [line for line in json.loads(report)["sizes"] if line["tier"] == "remote"]


def test_sizes_and_records(tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    with BrokerProcess(settings(in_directory(remote)), data_dir=tmp_path / "data") as broker:
        create(broker, "t")
        produce(broker, "t", [b"%06d" % number * 200 for number in range(4000)])
        until_tiered(broker, "t")
        of_cluster: list[dict[str, object]] = []

        def told() -> bool:
            of_cluster[:] = remote_lines(kwire("log", "sizes", "--bootstrap", broker.bootstrap, "--format", "json"))
            sizes = [path.stat().st_size for path in copies(remote)]
            return [(line["topic"], line["segments"], line["bytes"]) for line in of_cluster] == [
                ("t", len(sizes), sum(sizes))
            ]

        until(told, "what is told is not what is there")
        broker.stop()
        assert remote_lines(kwire("log", "sizes", str(broker.data_dir), "--format", "json")) == of_cluster
        kept = [path for path in broker.data_dir.glob("__remote_log_metadata-*/*.log") if path.stat().st_size]
        dumped = kwire("log", "dump", "--records", *map(str, kept))
        assert dumped.count("RemoteLogSegmentMetadata") >= 2
