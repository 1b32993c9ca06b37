"""The Spark that a job runs in: its own, or the one that spark-submit set up."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
"""What `format("kafka")` needs, in the version of this Spark."""

_BY_SUBMIT = {"PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"}
_JARS = {"spark.jars", "spark.jars.packages"}
ZONE = "UTC"
"""Of times that do not name theirs: a job gives the same wherever it runs."""
SHUFFLE_PARTITIONS = 4
"""On one machine. Each is a task in every batch, and 200 of them, Spark's default, take longer than the data."""


def open_session(name: str, settings: Mapping[str, str]) -> SparkSession:
    """`settings` are Spark's own, by their names; they win over what this sets."""
    conf = SparkConf().setAppName(name)
    if not os.environ.keys() & _BY_SUBMIT:
        # Python workers are of this interpreter, and nobody chose the connector: Spark itself resolves it, and keeps
        # it in the user's Ivy cache.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        if not settings.keys() & _JARS:
            conf.set("spark.jars.packages", CONNECTOR)
        conf.set("spark.ui.showConsoleProgress", "false")
    # What the user set, by whatever way, is known once there is a context; a session may still have more.
    context = SparkContext.getOrCreate(conf.setAll(list(settings.items())))
    spark = SparkSession.builder.config(map={**defaults(context), **settings}).getOrCreate()
    # What is logged as an error comes as an exception too, whose one line shall not drown in stack traces.
    spark.sparkContext.setLogLevel("FATAL")
    _ship(spark)
    return spark


def defaults(context: SparkContext) -> dict[str, str]:
    """Settings of sessions that nobody chose."""
    given = {"spark.sql.session.timeZone": ZONE}
    if re.match(r"local(\[|$)", context.master):
        given["spark.sql.shuffle.partitions"] = str(SHUFFLE_PARTITIONS)
    chosen = context.getConf()
    return {name: value for name, value in given.items() if not chosen.contains(name)}


def _ship(spark: SparkSession) -> None:
    """Gives this package to the Python workers: functions of it run there.

    Those on this machine need it too, since they know neither the folder that spark-submit found the job in nor what
    the job put on its path. Executors fetch the archive when they first need it, so it stays until this process ends.
    """
    package = Path(__file__).parent
    name = f"{package.name}.zip"
    if any(Path(file).name == name for file in spark.sparkContext.listFiles):
        return
    folder = tempfile.mkdtemp(prefix="spark-jobs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = Path(folder) / name
    with zipfile.ZipFile(archive, "w") as target:
        for path in package.rglob("*.py"):
            if "tests" not in path.parts:
                target.write(path, path.relative_to(package.parent))
    spark.sparkContext.addPyFile(str(archive))
