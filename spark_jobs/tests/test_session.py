"""A job has the same Spark by `spark-submit` and by `python -m`, in whatever zone of time the machine is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from jvm.spark import INSTALLED
from spark_jobs.session import SHUFFLE_PARTITIONS
from spark_jobs.tests.jobs import PATIENCE_S, ROOT

pytestmark = [pytest.mark.xdist_group("spark-2"), pytest.mark.timeout(300)]

ZONE, PARTITIONS = "spark.sql.session.timeZone", "spark.sql.shuffle.partitions"
MIDNIGHT = 1_704_067_200
"""2024-01-01 in UTC, in seconds."""
PROGRAM = """
import sys
from spark_jobs.session import open_session
spark = open_session("test", dict(word.split("=", 1) for word in sys.argv[1:]))
for each in (spark, spark.newSession()):
    (row,) = each.sql("SELECT unix_timestamp('2024-01-01 00:00:00')").collect()
    print("found", row[0], each.conf.get("spark.sql.shuffle.partitions"))
"""


@pytest.mark.parametrize(
    ("submit", "settings", "seconds", "partitions"),
    [
        (True, {}, MIDNIGHT, SHUFFLE_PARTITIONS),
        (False, {}, MIDNIGHT, SHUFFLE_PARTITIONS),
        (True, {ZONE: "Asia/Tokyo", PARTITIONS: "7"}, MIDNIGHT - 9 * 3600, 7),
        (True, {"spark.master": "local-cluster[1,1,1024]"}, MIDNIGHT, 200),
    ],
    ids=["submitted", "by itself", "submitted, as chosen", "submitted to a cluster"],
)
def test_defaults(submit: bool, settings: Mapping[str, str], seconds: int, partitions: int, tmp_path: Path) -> None:
    of_tests = {key: value for key, value in INSTALLED.settings(tmp_path).items() if key not in (ZONE, PARTITIONS)}
    settings = {**of_tests, **settings}
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    if submit:
        command = INSTALLED.submit_command(program, settings=settings)
    else:
        command = [str(INSTALLED.python), str(program), *(f"{key}={value}" for key, value in settings.items())]
    environment = os.environ | INSTALLED.environment() | {"PYTHONPATH": str(ROOT), "TZ": "America/New_York"}
    ended = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    found = [line for line in ended.stdout.splitlines() if line.startswith("found ")]
    assert found == [f"found {seconds} {partitions}"] * 2, ended.stderr[-5000:]
