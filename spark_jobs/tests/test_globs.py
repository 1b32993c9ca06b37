"""Names of files, matched as Spark matches them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_jobs.faults import Fault
from spark_jobs.globs import compiled

NAMES = [
    "a.csv",
    "a.json",
    "a.csv.gz",
    "b1.csv",
    "c[1].csv",
    "a+b.csv",
    "^a",
    "!a",
    "a{b}",
    "a,b",
    "A.CSV",
    "x*y",
    "a&b",
]
GLOBS = [
    "*.csv",
    "*.{json,csv}",
    "{a,b?}.csv",
    "[ab]*",
    "[!a]*",
    "[^a]*",
    "[a-b]*.csv",
    "c\\[1\\].csv",
    "a+b.csv",
    "^a",
]
GLOBS += ["!a", "a,b", "x\\*y", "*", "?", "a\\{b\\}", "*.[cj]*", "{a.csv,a.json}", "*}", "a&b", "*{.csv,.csv.gz}"]


@pytest.mark.xdist_group("spark-2")
def test_a_glob_matches_what_hadoop_matches(spark: SparkSession) -> None:
    hadoop = spark.sparkContext._jvm.org.apache.hadoop.fs.GlobPattern
    for glob in GLOBS:
        theirs = hadoop(glob)
        assert [name for name in NAMES if compiled(glob).fullmatch(name)] == [
            name for name in NAMES if theirs.matches(name)
        ], glob


@pytest.mark.parametrize("glob", ["[abc", "{abc", "a\\", "[a[b]", "{a,[b}"])
def test_what_hadoop_refuses_is_told_in_a_line(glob: str) -> None:
    with pytest.raises(Fault, match="is no pattern of names: "):
        compiled(glob)
