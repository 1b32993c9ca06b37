"""The Spark that a job runs in: its own, or the one that spark-submit set up."""

from __future__ import annotations

import os
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
    spark.sparkContext.setLogLevel("ERROR")
    if not spark.sparkContext.master.startswith("local"):
        _ship(spark)
    return spark


def _ship(spark: SparkSession) -> None:
    """Sends this package to the executors on other machines: functions of it run there."""
    package = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "spark_jobs.zip"
        with zipfile.ZipFile(archive, "w") as target:
            for path in package.glob("*.py"):
                target.write(path, f"{package.name}/{path.name}")
        spark.sparkContext.addPyFile(str(archive))
