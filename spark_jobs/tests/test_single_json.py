"""What Spark's parser makes of values that hold more than one, or other things behind the first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from spark_jobs.columns import MALFORMED
from spark_jobs.single_json import single

pytestmark = pytest.mark.xdist_group("spark")

SINGLE = (
    '{"a": 1}',
    ' {"a": 1}\t\r\n',
    '{"a": 1, "b": [{"c": "}]"}, [{}, null]]}',
    '{"b": {"a": "2"}, "a": 1}',
    "{'a': 1}",
    '{"a": NaN}',
    "{}",
)
MORE = (
    '{"a": 1}{"a": 2}',
    '{"a": 1} {"a": 2}',
    '{"a": 1}\n{"a": 2}\n',
    '{"a": 1},{"a": 2}',
    '{"a": 1},',
    '{"a": 1}]',
    '{"a": 1}]x',
    '{"a": 1},null]',
    '{"a": 1},null]x',
    '{"a": 1}}',
    '{"a": 1} x',
    '{"a": 1}//',
    '{"a": 1}\0',
)
MALFORMED_ANYWAY = ("?", "[]", '[{"a": 1}]', '{"a": 1', '{"a": "one"}', "1", "null", "]", '],{"a": 1}')


ANSI = "spark.sql.ansi.enabled"


@pytest.fixture(params=["true", "false"], ids=["ANSI", "not ANSI"])
def either(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """Not a session of its own: whichever was used last is the one that the next job would get."""
    before = spark.conf.get(ANSI)
    spark.conf.set(ANSI, request.param)
    try:
        yield spark
    finally:
        spark.conf.set(ANSI, str(before))


def test_one_value_is_read_as_ever_and_more_are_malformed(either: SparkSession) -> None:
    texts = [*SINGLE, *MORE, *MALFORMED_ANYWAY, "", " \n", None]
    given = either.createDataFrame([(text,) for text in texts], "text STRING")
    options = {"columnNameOfCorruptRecord": MALFORMED}
    before, after = (
        f.from_json(text, f"a DOUBLE, {MALFORMED} STRING", options) for text in (f.col("text"), single(f.col("text")))
    )
    rows = given.select("text", before.alias("before"), after.alias("after")).collect()
    assert [row.text for row in rows] == texts
    for text, was, found in rows:
        well = found is not None and found[MALFORMED] is None
        if text in MALFORMED_ANYWAY:
            assert (was[MALFORMED], well) == (text, False)
        elif text in MORE:
            assert (was["a"], well) == (1.0, False), text
        else:
            assert str(found) == str(was), text
            assert well == (text in SINGLE), text
