"""Spark's Kafka connector: the jars that a PySpark from PyPI lacks.

A user's own job needs none of this: `spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION`,
with the version of his Spark, lets Spark resolve them. The tests hand Spark the files themselves (`spark.jars`):
resolved once and not at each start, without a registry from then on, and safe when several test processes start a
Spark at the same time, which Spark's own resolver is not.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from jvm import maven

_REPOSITORY = Path(__file__).parents[1]


@dataclass(frozen=True)
class Spark:
    """A Spark of one version, in a virtual environment."""

    python: Path
    pom: Path

    @property
    def version(self) -> str:
        return maven.version(self.pom)

    @property
    def home(self) -> Path:
        """Where its programs and jars are."""
        (found,) = self.python.parents[1].glob("lib/python3*/site-packages/pyspark")
        return found

    def connector_jars(self) -> list[Path]:
        """The connector and what it needs beyond PySpark's own jars."""
        return sorted(maven.jars(self.pom).glob("*.jar"))

    def settings(self, scratch: Path) -> dict[str, str]:
        """All that tests set; the temporary files of Spark go to `scratch`, which the caller removes."""
        return SETTINGS | {
            "spark.jars": ",".join(map(str, self.connector_jars())),
            "spark.local.dir": str(scratch),
            "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {maven.scratch_option(scratch)}",
        }

    def environment(self) -> dict[str, str]:
        """What it needs to run Python code with its own Python."""
        return {"PYSPARK_PYTHON": str(self.python), "PYSPARK_DRIVER_PYTHON": str(self.python)}

    def submit_command(self, script: Path, *arguments: str, settings: Mapping[str, str]) -> list[str]:
        """The command line that hands a program to its `spark-submit`."""
        options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        return [str(self.home / "bin/spark-submit"), *options, str(script), *arguments]


POM_4_0 = Path(__file__).with_name("spark-kafka.xml")
"""All its jars resolve by name: `spark.jars.packages` will do."""
POM_4_2 = Path(__file__).with_name("spark-kafka-4.2.xml")


def _installed() -> Spark:
    version = metadata.version("pyspark")
    (pom,) = (pom for pom in (POM_4_0, POM_4_2) if maven.version(pom) == version)
    return Spark(Path(sys.prefix) / "bin/python", pom)


INSTALLED = _installed()
"""That of this Python: 4.0 in `.venv`."""
SPARK_4_2 = Spark(_REPOSITORY / ".venv-spark-4.2/bin/python", POM_4_2)
"""The one with `transformWithState` in Python."""

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""Compile quickly, collect simply: a test's Spark lives for minutes.

A JVM that compiles in one tier reserves 48 MiB for compiled code, which one session that serves dozens of tests
fills (each query brings classes of its own); it then stops compiling and, a little later, fails. So it gets what a
JVM reserves by default, with all tiers.
"""
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
}
"""The same for each Spark that tests start in their own process."""
