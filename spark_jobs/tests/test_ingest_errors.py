"""What a user of ingest can put right is one line that says what, and what was written until then."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from pyspark.sql import SparkSession

from kwire.testing.process import BrokerProcess
from spark_jobs.ingest import main
from spark_jobs.tests.jobs import run
from spark_jobs.tests.topics import count, records

pytestmark = pytest.mark.xdist_group("spark-2")


Failing = Callable[..., tuple[str, str]]


@pytest.fixture
def failing(
    spark: SparkSession, kwire_broker: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Failing:
    """Runs the job, which ends with 1; what it wrote to standard output, and the line of its error."""

    def call(*arguments: object) -> tuple[str, str]:
        with pytest.raises(SystemExit) as ended:
            run(main, "-b", kwire_broker.bootstrap, "--checkpoint", tmp_path / "checkpoint", *arguments)
        said = capsys.readouterr()
        assert ended.value.code == 1
        (line,) = said.err.splitlines()
        return said.out, line.removeprefix("ingest: ")

    return call


FILES = {
    "a.csv": "x,y\n1,2\n",
    "b.csv": "x,y,z\n1,2,3\n",
    "c.csv": "my x,y\n1,2\n",
    "twice.csv": "a,a,b\n1,2,3\n",
    "unnamed.csv": ",x\n1,2\n",
    "good.json": '{"a":1}\n',
}
THREE = "which has 3 columns: there are 2 in file://"


@pytest.mark.parametrize(
    ("file", "arguments", "told"),
    [
        ("a.csv", ["--schema", "x INT, y INT, z INT"], f"CSV header does not conform to the schema, {THREE}"),
        ("twice.csv", [], "the column a is there twice in file://"),
        ("unnamed.csv", ["--schema", "id INT, x INT"], "a column without a name stands where id should in file://"),
        ("c.csv", ["--schema", "x INT, y INT"], "my x stands where x should in file://"),
        ("a.csv", ["--option", "maxColumns=x"], "maxColumns should be an integer. Found x"),
        ("a.csv", ["--option", "maxColumns=1"], "the files can't be read so: "),
        ("a.csv", ["--schema", ""], "--schema names no column"),
        ("good.json", ["--kafka", "key.serializer=foo"], "Kafka option 'key.serializer' is not supported"),
        ("good.json", ["--names", "[abc"], "--names '[abc' is no pattern of names: a [ is not closed"),
        ("good.json", ["--names", "{abc"], "--names '{abc' is no pattern of names: a { is not closed"),
    ],
)
def test_what_is_wrong_is_one_line(
    failing: Failing, kwire_topic: str, tmp_path: Path, file: str, arguments: list[str], told: str
) -> None:
    (tmp_path / file).write_text(FILES[file])
    _, line = failing(tmp_path / file, kwire_topic, *arguments)
    assert told in line
    assert "file://" not in told or file in line


def test_files_with_different_numbers_of_columns(failing: Failing, kwire_topic: str, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(FILES[name])
    _, line = failing(tmp_path / "a.csv", tmp_path / "b.csv", kwire_topic)
    sizes = {"a.csv": (3, 2), "b.csv": (2, 3)}
    assert any(
        f"which has {schema} columns: there are {found} in file://{tmp_path}/{name}" in line
        for name, (schema, found) in sizes.items()
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["a.csv", ""], "a topic has a name"),
        (["a.csv", "t", "--dead-letter", "t"], "--dead-letter must be another topic"),
        (["a.csv", "t", "--as-text", "--schema", "x INT"], "--as-text and --schema exclude each other"),
        (["good.json", "t", "--as-text"], "--as-text is for CSV; this is json"),
    ],
)
def test_what_excludes_each_other(tmp_path: Path, arguments: list[str], told: str) -> None:
    file, *others = arguments
    (tmp_path / file).write_text(FILES[file])
    with pytest.raises(click.UsageError, match=told):
        run(main, "--checkpoint", tmp_path / "checkpoint", tmp_path / file, *others)


def test_a_pattern_of_names_with_braces(
    spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.json").write_text('{"x":2}\n')
    checkpoint = ["--checkpoint", tmp_path / "checkpoint"]
    run(main, "-b", kwire_broker.bootstrap, *checkpoint, tmp_path, kwire_topic, "--names", "*.{csv,txt}")
    assert [record.value for record in records(kwire_broker.bootstrap, kwire_topic)] == [b'{"x":1}']


def test_names_that_differ_by_case_are_two(
    spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text('{"a":1,"A":2}\n')
    checkpoint = ["--checkpoint", tmp_path / "checkpoint"]
    run(main, "-b", kwire_broker.bootstrap, *checkpoint, tmp_path / "a.json", kwire_topic, "--key", "A")
    (record,) = records(kwire_broker.bootstrap, kwire_topic)
    assert (record.key, record.value) == (b"2", b'{"A":2,"a":1}')
    assert spark.conf.get("spark.sql.caseSensitive") == "false"


def test_whole_batches_are_counted_when_a_later_one_fails(
    failing: Failing, kwire_broker: BrokerProcess, kwire_topic: str, tmp_path: Path
) -> None:
    for number in range(6):
        file = tmp_path / f"{number}.json"
        file.write_text("".join(f'{{"a":{number * 10 + row}}}\n' for row in range(10)))
        os.utime(file, (1e9 + number, 1e9 + number))
    with (tmp_path / "5.json").open("a") as last:
        last.write("{bad")
    out, line = failing(tmp_path, kwire_topic, "--in-order", "--format", "json", "--names", "*.json")
    assert line.startswith("malformed row in file:")
    assert out == (
        f"ingest: 50 records written to {kwire_topic} in whole batches; "
        "some of the batch that was under way may be there, too\n"
    )
    assert 50 <= count(kwire_broker.bootstrap, kwire_topic) <= 60
