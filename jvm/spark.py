"""Spark's Kafka connector: the jars that a PySpark from PyPI lacks.

A user's own job needs none of this: `spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION`,
with the version of his Spark, lets Spark resolve them. The tests hand Spark the files themselves (`spark.jars`):
resolved once and not at each start, without a registry from then on, and safe when several test processes start a
Spark at the same time, which Spark's own resolver is not.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from jvm import maven

POM = Path(__file__).with_name("spark-kafka.xml")
VERSION = maven.version(POM)


def connector_jars() -> list[Path]:
    """The connector for Spark VERSION and what it needs beyond PySpark's own jars."""
    return sorted(maven.jars(POM).glob("*.jar"))


SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Compile quickly, collect simply: a test's Spark lives for less than a minute.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
}
"""What tests set, besides `spark.jars`."""


def settings(scratch: Path) -> dict[str, str]:
    """SETTINGS and the connector; the temporary files of Spark go to `scratch`, which the caller removes."""
    java_options = "spark.driver.extraJavaOptions"
    return SETTINGS | {
        "spark.jars": ",".join(map(str, connector_jars())),
        "spark.local.dir": str(scratch),
        java_options: f"{SETTINGS[java_options]} {maven.scratch_option(scratch)}",
    }


def environment() -> dict[str, str]:
    """What Spark needs to run Python code with this Python."""
    return {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


def submit_command(script: Path, *arguments: str, scratch: Path) -> list[str]:
    """The command line that hands a program to the `spark-submit` of this Python's PySpark; `scratch` as above."""
    package = importlib.util.find_spec("pyspark")
    assert package is not None
    assert package.origin is not None
    program = Path(package.origin).parent / "bin" / "spark-submit"
    options = [word for key, value in settings(scratch).items() for word in ("--conf", f"{key}={value}")]
    return [str(program), *options, str(script), *arguments]
