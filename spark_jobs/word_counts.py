"""A book read aloud, counted while it is read: text -> topic -> words in windows of time -> topic.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 spark_jobs/word_counts.py \\
        publish
    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 spark_jobs/word_counts.py \\
        count --checkpoint ./words

`publish` writes each line of a text to a topic with Spark's Kafka sink, as {"line": N, "read_at": TIME, "text":
LINE}. The time is the event time: the moment at which a reader, who begins at `--start` and needs
`--seconds-per-line`, has reached it.

`count` reads that topic as a stream, counts each word in tumbling windows of event time, and writes every count that
a batch changed to a second topic: key "WINDOW_START WORD", value {"window_start", "window_end", "word", "count"}. The
last value of a key is its count. Progress and state live in `--checkpoint`: started again with the same one, after a
stop or a crash, the stream goes on where it was. The sink writes at least once, so a batch that was under way at a
crash comes again, with the same counts. Lines may come out of order by up to `--watermark`; what comes later is not
counted.

Both run until they are done: `count` when it has read all that was there at its start, or never with `--follow`.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_jobs.command_line import Run, checkpoint, follow, job, paragraphs, reads
from spark_jobs.durations import Duration, words
from spark_jobs.topics import Reading

BOOK = Path(__file__).parent / "data" / "frankenstein.txt"
WORD = r"\p{L}+(?:’\p{L}+)*"
"""A word: letters, with an apostrophe between them where there is one."""
LINE_SCHEMA = "line INT, read_at TIMESTAMP, text STRING"
TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss'Z'"


@click.group("word_counts", help=paragraphs(__doc__), context_settings={"max_content_width": 120})
def main() -> None:
    pass


lines_topic = click.option(
    "--lines-topic",
    default="book-lines",
    metavar="TOPIC",
    help="Of the lines; `publish` creates it where it is missing.",
)


@job("word_counts publish", "Writes a text to a topic, line by line.")
@lines_topic
@click.option(
    "--text",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=BOOK,
    show_default="Frankenstein",
    metavar="FILE",
    help="In UTF-8.",
)
@click.option(
    "--start",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z"]),
    default="2024-01-01T20:00:00Z",
    metavar="TIME",
    help="When the reader begins.",
)
@click.option("--seconds-per-line", type=click.IntRange(min=0), default=5, metavar="N", help="How slowly he reads.")
def publish(run: Run, lines_topic: str, text: Path, start: datetime, seconds_per_line: int) -> None:
    run.cluster.provide(run.spark, lines_topic, 1, {})
    book = run.spark.read.text(str(text.resolve()), wholetext=True)
    lines = book.select(f.posexplode(f.split("value", "\r?\n")).alias("line", "text")).where("trim(text) != ''")
    read_at = f.timestamp_seconds(f.lit(int(start.timestamp())) + f.col("line") * seconds_per_line)
    record = f.to_json(f.struct("line", _utc(read_at).alias("read_at"), "text"))
    # One task writes all lines, so that they reach the topic in the order of the text.
    records = lines.select(f.col("line").cast("string").alias("key"), record.alias("value")).coalesce(1)
    records.write.format("kafka").options(**run.cluster.options, topic=lines_topic).save()


@job("word_counts count", "Counts the words of that topic, in windows of time, and writes the counts to another one.")
@lines_topic
@click.option("--counts-topic", default="book-words", metavar="TOPIC", help="Created where it is missing.")
@click.option("--window", type=Duration(), default="1 hour", help="The length of a window.")
@click.option("--watermark", type=Duration(), default="10 minutes", help="How late lines may come.")
@reads
@checkpoint
@follow
def count(
    run: Run,
    lines_topic: str,
    counts_topic: str,
    window: timedelta,
    watermark: timedelta,
    reading: Reading,
    checkpoint: Path,
    follow: bool,
) -> None:
    partitions = run.cluster.demand(run.spark, lines_topic)[lines_topic]
    run.cluster.provide(run.spark, counts_topic, partitions, {})
    counts = counts_of(lines_of(run.cluster.stream(run.spark, lines_topic, reading)), window, watermark)
    start, end = (_utc(f.col(f"window.{side}")) for side in ("start", "end"))
    value = f.to_json(f.struct(start.alias("window_start"), end.alias("window_end"), "word", "count"))
    records = counts.select(f.concat_ws(" ", start, "word").alias("key"), value.alias("value"))
    writer = run.cluster.sink(records, counts_topic).outputMode("update")
    meaning = {"--counts-topic": counts_topic, "--window": window}
    run.start(writer, checkpoint, follow=follow, topics=[lines_topic], **meaning).awaitTermination()


def lines_of(records: DataFrame) -> DataFrame:
    """Lines: line, read_at, text."""
    return records.select(f.from_json(f.col("value").cast("string"), LINE_SCHEMA).alias("line")).select("line.*")


def counts_of(lines: DataFrame, window: timedelta, watermark: timedelta) -> DataFrame:
    """How often each word comes in each window: window, word, count."""
    spoken = f.explode(f.regexp_extract_all(f.lower("text"), f.lit(WORD), f.lit(0)))
    found = lines.withWatermark("read_at", words(watermark)).select("read_at", spoken.alias("word"))
    return found.groupBy(f.window("read_at", words(window)), "word").count()


def _utc(time: Column) -> Column:
    """As text, whatever Spark's own zone is."""
    return f.date_format(f.to_utc_timestamp(time, f.current_timezone()), TIME_FORMAT)


main.add_command(publish, "publish")
main.add_command(count, "count")

if __name__ == "__main__":
    main()
