"""`kwire import` from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.adoption.apache import CLUSTER, ApacheDirs, topic
from tests.cluster.adoption.test_plan import CONFIGS


@pytest.fixture
def dirs(tmp_path: Path) -> ApacheDirs:
    found = ApacheDirs(tmp_path)
    found.log(*topic("orders", 1, 2), *CONFIGS)
    found.partition("orders", 1)
    return found


def test_the_report(kwire, dirs: ApacheDirs, tmp_path: Path) -> None:
    result = kwire("import", *dirs.names, "--data-dir", f"{tmp_path}/kwire")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        f"node 3 of cluster {CLUSTER}, stopped cleanly",
        "1 topics, 2 partitions, 130 B",
        "  orders: 2 partitions, 130 B",
    ]
    assert "made anew, since nothing was ever written to them: orders-1" in lines
    assert "not taken over:" in lines
    assert lines[-1] == f"done; serve it with: kwire serve --data-dir {tmp_path}/kwire --set node.id=3"
    assert (tmp_path / "kwire" / "kwire-metadata.journal").exists()


def test_a_dry_run(kwire, dirs: ApacheDirs, tmp_path: Path) -> None:
    result = kwire("import", *dirs.names, "--data-dir", f"{tmp_path}/kwire", "--dry-run", "--format", "json")
    report = json.loads(result.stdout)
    assert (report["dry_run"], report["cluster_id"], report["node_id"]) == (True, CLUSTER, 3)
    assert report["topics"] == [{"name": "orders", "partitions": 2, "bytes": 130}]
    assert report["empty_partitions"] == ["orders-1"]
    assert not (tmp_path / "kwire").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--link", "--move"], 2, "--link and --move: one of them"),
        ([], 1, "is no data directory of Apache Kafka: meta.properties is missing"),
    ],
)
def test_what_is_refused_is_one_line(kwire, tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    (tmp_path / "source").mkdir()
    result = kwire("import", f"{tmp_path}/source", "--data-dir", f"{tmp_path}/kwire", *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1)
    assert said in result.stderr


def test_a_dir_of_apache_kafka_is_not_served_as_it_is(kwire, dirs: ApacheDirs) -> None:
    result = kwire("serve", "--data-dir", dirs.names[0], "--listen", "127.0.0.1:0", "--set", "node.id=3")
    assert result.exit_code == 1
    assert "is a data directory of Apache Kafka: kwire import takes it over" in result.output
    assert (dirs.paths[0] / "orders-0").exists()
