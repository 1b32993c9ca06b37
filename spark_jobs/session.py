"""The Spark that a job runs in: its own, or the one that spark-submit set up."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
"""What `format("kafka")` needs, in the version of this Spark."""

_BY_SUBMIT = {"PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"}
_JARS = {"spark.jars", "spark.jars.packages"}
_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    # A partition of a shuffle is a task in every batch, and 200 of them, Spark's default, take longer than the data.
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.showConsoleProgress": "false",
}


def open_session(name: str, settings: Mapping[str, str]) -> SparkSession:
    """`settings` are Spark's own, by their names; they win over what this sets."""
    builder = SparkSession.builder.appName(name)
    if not os.environ.keys() & _BY_SUBMIT:
        # Python workers are of this interpreter, and nobody chose the connector: Spark itself resolves it, and keeps
        # it in the user's Ivy cache.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        if not settings.keys() & _JARS:
            builder = builder.config("spark.jars.packages", CONNECTOR)
        for key, value in _DEFAULTS.items():
            builder = builder.config(key, value)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # What is logged as an error comes as an exception too, whose one line shall not drown in stack traces.
    spark.sparkContext.setLogLevel("FATAL")
    _ship(spark)
    return spark


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
