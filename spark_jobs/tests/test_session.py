"""A job has the same Spark by `spark-submit` and by `python -m`, in whatever zone of time the machine is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jvm.spark import INSTALLED
from spark_jobs.session import SHUFFLE_PARTITIONS, defaults
from spark_jobs.tests.jobs import PATIENCE_S, ROOT

pytestmark = pytest.mark.xdist_group("spark-2")

ZONE, PARTITIONS = "spark.sql.session.timeZone", "spark.sql.shuffle.partitions"
MIDNIGHT = 1_704_067_200
"""2024-01-01 in UTC, in seconds."""
PROGRAM = """
from spark_jobs.session import open_session
spark = open_session("test", {})
for each in (spark, spark.newSession()):
    (row,) = each.sql("SELECT unix_timestamp('2024-01-01 00:00:00')").collect()
    print("found", row[0], each.conf.get("spark.sql.shuffle.partitions"))
"""


def test_what_spark_submit_opens(tmp_path: Path) -> None:
    """In sessions of their own, too."""
    settings = {key: value for key, value in INSTALLED.settings(tmp_path).items() if key not in (ZONE, PARTITIONS)}
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = INSTALLED.submit_command(program, settings=settings)
    environment = os.environ | INSTALLED.environment() | {"PYTHONPATH": str(ROOT), "TZ": "America/New_York"}
    ended = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    found = [line for line in ended.stdout.splitlines() if line.startswith("found ")]
    assert found == [f"found {MIDNIGHT} {SHUFFLE_PARTITIONS}"] * 2, ended.stderr[-5000:]


@pytest.mark.parametrize(
    ("master", "chosen", "given"),
    [
        ("local", {}, {ZONE: "UTC", PARTITIONS: "4"}),
        ("local[*]", {}, {ZONE: "UTC", PARTITIONS: "4"}),
        ("local[2]", {ZONE: "Asia/Tokyo"}, {PARTITIONS: "4"}),
        ("local[2]", {ZONE: "Asia/Tokyo", PARTITIONS: "7"}, {}),
        ("local-cluster[1,1,1024]", {}, {ZONE: "UTC"}),
        ("spark://host:7077", {PARTITIONS: "7"}, {ZONE: "UTC"}),
    ],
)
def test_defaults(master: str, chosen: dict[str, str], given: dict[str, str]) -> None:
    class Conf:
        contains = chosen.__contains__

    class Context:
        def __init__(self) -> None:
            self.master = master

        def getConf(self) -> Conf:
            return Conf()

    assert defaults(Context()) == given  # type: ignore[arg-type]
