"""Files and folders to a topic: JSON lines, CSV, Parquet or plain text, also compressed by gzip.

    python -m spark_jobs.ingest flights/ flights --key origin --checkpoint ./ingest
    python -m spark_jobs.ingest a.csv.gz b.csv flights --schema "origin STRING, dep_delay INT" --checkpoint ./ingest
    python -m spark_jobs.ingest /var/log/app app-logs --format text --header file=_metadata.file_name \\
        --checkpoint ./ingest --follow --rate 500

A record is a row: its value is the row as JSON, without the fields that are null; of text, the line as it is. Keys and
headers are SQL over the columns of the row (of text: value) and over _metadata (file_path, a URI, file_name, file_size,
file_modification_time). A topic that is missing is created.

The schema is read from the files that are there at the start, unless given. Fields of JSON that it does not have are
left out. Names that come twice in an object need one; names that differ by case are two, and --key takes them as such.

A schema that is read from CSV makes values of what looks like them: 01234 becomes 1234, and 1.10 becomes 1.1. --as-text
leaves all columns as they stand there, a --schema those that it has as STRING. Files are read as UTF-8: other bytes
become U+FFFD in CSV, and make a row of JSON malformed, unless --option encoding=ISO-8859-1, or so, says what they are.

The first line of a CSV file has the names of its columns, and must have them in the order of the schema; the first
column is _c0 if its name is empty, as pandas writes it. Quotes in quoted values are doubled (RFC 4180); --option
escape=\\ is for files with a backslash before them. A line break in quotes is read with --option multiLine=true, and by
itself where there is one column; else its lines are malformed. A file is then read by one task, and a quote that is
never closed takes in what follows. JSON in which an object has several lines is read with multiLine, too. What
follows the first value is then left out unseen, as it is on lines of another encoding.

--option header=false, sep=;, nullValue=NA, timestampFormat=... and so on are those of Spark for the format.

A malformed row (no JSON, something behind the object on its line, a field of another type, too few or too many columns)
ends the job with the file and the line, before the checkpoint says that the file is done, unless it is dropped and
counted, or sent to a topic of its own as it is, with the file in the header "file".

Started again with the same checkpoint, the job reads the files that it has not read. A file is read once: it must be
whole when it appears, as it is when it is moved into the folder, and what is added to it later is not read. The paths
are of the local file system, or of one that is at the same place on all machines of a cluster.

At least once: nothing is left out after a crash, and the files of the batch that was under way are written again from
their beginning. Tasks read pieces of a batch at once, so that rows may change places, unless --in-order.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.types import Row

from spark_jobs import files, progress
from spark_jobs.case_sensitive import case_sensitive
from spark_jobs.columns import MALFORMED, quoted, repeated
from spark_jobs.command_line import Run, Setting, checkpoint, follow, job
from spark_jobs.file_source import FileSource
from spark_jobs.rate import RateGate
from spark_jobs.records import as_bytes, header, headers_of

BATCH_BYTES = 64 << 20


@job("ingest", __doc__)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH...")
@click.argument("topic")
@click.option(
    "--format", "kind", type=click.Choice(["json", "csv", "parquet", "text"]), help="By the names if not given."
)
@click.option("--names", metavar="PATTERN", help="Only files with such names, as '*.{csv,csv.gz}'.")
@click.option("--schema", metavar="DDL", help="Columns and types, as 'origin STRING, dep_delay INT'.")
@click.option("--as-text", is_flag=True, help="All columns of CSV are text, as they stand there.")
@click.option("--option", "options", type=Setting(), multiple=True, metavar="KEY=VALUE", help="Of Spark's reader.")
@click.option("--key", metavar="SQL", help="The key of a record: a column, or an expression.")
@click.option(
    "--header", "headers", type=Setting(), multiple=True, metavar="NAME=SQL", help="A header; may be repeated."
)
@click.option("--partitions", type=click.IntRange(min=1), default=1, metavar="N", help="Of a topic that is created.")
@click.option("--rate", type=click.IntRange(min=1), metavar="N", help="At most so many records in a second.")
@click.option("--in-order", is_flag=True, help="File after file, the oldest first, row after row, by one task.")
@click.option(
    "--max-bytes-per-trigger",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Most bytes of files in a batch; a larger file is a batch by itself.  [default: {BATCH_BYTES}]",
)
@click.option("--drop-malformed", is_flag=True, help="Leave malformed rows out, and count them.")
@click.option("--dead-letter", metavar="TOPIC", help="Send malformed rows there.")
@checkpoint
@follow
def main(
    run: Run,
    paths: tuple[Path, ...],
    topic: str,
    kind: str | None,
    names: str | None,
    schema: str | None,
    as_text: bool,
    options: tuple[tuple[str, str], ...],
    key: str | None,
    headers: tuple[tuple[str, str], ...],
    partitions: int,
    rate: int | None,
    in_order: bool,
    max_bytes_per_trigger: int | None,
    drop_malformed: bool,
    dead_letter: str | None,
    checkpoint: Path,
    follow: bool,
) -> None:
    if drop_malformed and dead_letter is not None:
        raise click.UsageError("--drop-malformed and --dead-letter exclude each other")
    if in_order and max_bytes_per_trigger is not None:
        raise click.UsageError("--in-order and --max-bytes-per-trigger exclude each other: a batch is one file")
    if as_text and schema is not None:
        raise click.UsageError("--as-text and --schema exclude each other")
    if not topic:
        raise click.UsageError("a topic has a name")
    if dead_letter in (topic, ""):
        raise click.UsageError("--dead-letter must be another topic")
    found = files.sizes(paths, names)
    source = FileSource(kind or files.guessed_format(found), files.pattern(paths), dict(options), names, as_text)
    if as_text and source.kind != "csv":
        raise click.UsageError(f"--as-text is for CSV; this is {source.kind}")
    run.cluster.partitions(run.spark)  # a broker that does not answer is told before files are read for their schema
    columns = source.given_schema(schema) if schema is not None else source.inferred_schema(run.spark)
    most = {"maxFilesPerTrigger": 1} if in_order else {"maxBytesPerTrigger": max_bytes_per_trigger or BATCH_BYTES}
    with ExitStack() as stack:
        if repeated(columns, case=False) is not None:
            stack.enter_context(case_sensitive(run.spark))
        rows = source.stream(run.spark, columns, most)
        if in_order:
            rows = rows.coalesce(1)
        rows = rows.observe(Count.METRIC, f.count(f.lit(1)).alias("all"), f.count(MALFORMED).alias("malformed"))
        if drop_malformed:
            rows = rows.where(f.col(MALFORMED).isNull())
        value = (
            f.col("value") if source.kind == "text" else f.to_json(f.struct(*(quoted(name) for name in columns.names)))
        )
        written = records(rows, topic, value, key, dict(headers), dead_letter)
        for each in filter(None, (topic, dead_letter)):
            run.cluster.provide(run.spark, each, partitions, {})
        count = Count()
        stack.callback(lambda: print(f"ingest: {count.told(topic, dead_letter)}"))
        bar = stack.enter_context(Bar(found, checkpoint, shown=not follow and sys.stderr.isatty()))
        if rate is not None:
            gate = stack.enter_context(RateGate(rate, run.spark))
            written = written.mapInArrow(gate.passing, written.schema)
        query = run.start(run.cluster.sink(written), checkpoint, follow=follow, topic=topic)
        count.under_way = True
        for batch in progress.batches(query):
            count.add(batch.observedMetrics)
            bar.show(batch)
        count.under_way = False


def records(
    rows: DataFrame, topic: str, value: Column, key: str | None, headers: Mapping[str, str], dead_letter: str | None
) -> DataFrame:
    """What is to be written of these rows, and to which topic."""
    text = f.col(MALFORMED)
    well = text.isNull()
    file = f.col("_metadata.file_path")
    if dead_letter is None:
        told = f.concat(f.lit("malformed row in "), file, f.lit(": "), text)
        content = f.when(well, value).otherwise(f.raise_error(told).cast("string"))
    else:
        content = f.coalesce(text, value)
    return rows.select(
        f.when(well, as_bytes(key or "null")).alias("key"),
        content.cast("binary").alias("value"),
        f.when(well, headers_of(headers)).otherwise(f.array(header("file", file))).alias("headers"),
        f.when(well, topic).otherwise(dead_letter or topic).alias("topic"),
    )


@dataclass
class Count:
    """Of the rows of all batches so far."""

    METRIC = "rows"
    all: int = 0
    malformed: int = 0
    under_way: bool = False
    """Whether a batch may have been begun that did not end."""

    def add(self, metrics: Mapping[str, Row]) -> None:
        if self.METRIC in metrics:
            self.all += metrics[self.METRIC]["all"]
            self.malformed += metrics[self.METRIC]["malformed"]

    def told(self, topic: str, dead_letter: str | None) -> str:
        sentence = f"{self.all - self.malformed:,} records written to {topic}"
        if self.malformed:
            sentence += f", {self.malformed:,} malformed rows {f'sent to {dead_letter}' if dead_letter else 'dropped'}"
        if self.under_way:
            sentence += " in whole batches; some of the batch that was under way may be there, too"
        return sentence


class Bar:
    """The bytes of the files that are done, of all those that were there at the start, on standard error."""

    def __init__(self, sizes: Mapping[Path, int], checkpoint: Path, *, shown: bool) -> None:
        self._sizes = sizes
        self._read = files.ReadFiles(checkpoint)
        self._bar = click.progressbar(length=sum(sizes.values()), label="ingest", file=sys.stderr) if shown else None

    def show(self, batch: StreamingQueryProgress) -> None:
        if self._bar is not None:
            done = self._read.until(json.loads(batch.sources[0].endOffset)["logOffset"])
            self._bar.update(sum(self._sizes.get(file, 0) for file in done) - self._bar.pos)

    def __enter__(self) -> Bar:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)


if __name__ == "__main__":
    main()
