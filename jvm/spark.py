"""Spark's Kafka connector: the jars that a PySpark from PyPI lacks.

A user's own job needs none of this: `spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION`,
with the version of his Spark, lets Spark resolve them. The tests hand Spark the files themselves (`spark.jars`):
resolved once and not at each start, without a registry from then on, and safe when several test processes start a
Spark at the same time, which Spark's own resolver is not.
"""

from __future__ import annotations

from pathlib import Path

from jvm import maven

POM = Path(__file__).with_name("spark-kafka.xml")
VERSION = maven.version(POM)


def connector_jars() -> list[Path]:
    """The connector for Spark VERSION and what it needs beyond PySpark's own jars."""
    return sorted(maven.jars(POM).glob("*.jar"))
