"""A book read aloud, counted while it is read: text -> topic -> words in windows of time -> topic.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 spark_jobs/word_counts.py publish
    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 spark_jobs/word_counts.py count

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

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
BOOK = Path(__file__).parent / "data" / "frankenstein.txt"
WORD = r"\p{L}+(?:’\p{L}+)*"
"""A word: letters, with an apostrophe between them where there is one."""
LINE_SCHEMA = "line INT, read_at TIMESTAMP, text STRING"
TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss'Z'"


@dataclass(frozen=True)
class Publish:
    """The command line of `publish`."""

    bootstrap_servers: str
    lines_topic: str
    text: Path
    start: str
    seconds_per_line: int

    def run(self, spark: SparkSession) -> None:
        book = spark.read.text(str(self.text.resolve()), wholetext=True)
        lines = book.select(f.posexplode(f.split("value", "\r?\n")).alias("line", "text")).where("trim(text) != ''")
        start = f.lit(self.start).cast("timestamp").cast("long")
        read_at = f.timestamp_seconds(start + f.col("line") * self.seconds_per_line)
        record = f.to_json(f.struct("line", f.date_format(read_at, TIME_FORMAT).alias("read_at"), "text"))
        # One task writes all lines, so that they reach the topic in the order of the text.
        records = lines.select(f.col("line").cast("string").alias("key"), record.alias("value")).coalesce(1)
        (
            records.write.format("kafka")
            .option("kafka.bootstrap.servers", self.bootstrap_servers)
            .option("topic", self.lines_topic)
            .save()
        )


@dataclass(frozen=True)
class Count:
    """The command line of `count`."""

    bootstrap_servers: str
    lines_topic: str
    counts_topic: str
    checkpoint: Path
    window: str
    watermark: str
    max_offsets_per_trigger: int
    follow: bool

    def run(self, spark: SparkSession) -> None:
        counts = self.counts(self.lines(spark))
        start, end = (f.date_format(f"window.{side}", TIME_FORMAT) for side in ("start", "end"))
        value = f.to_json(f.struct(start.alias("window_start"), end.alias("window_end"), "word", "count"))
        writer = (
            counts.select(f.concat_ws(" ", start, "word").alias("key"), value.alias("value"))
            .writeStream.format("kafka")
            .outputMode("update")
            .option("kafka.bootstrap.servers", self.bootstrap_servers)
            .option("topic", self.counts_topic)
            .option("checkpointLocation", str(self.checkpoint.resolve()))
        )
        writer = writer.trigger(processingTime="1 second") if self.follow else writer.trigger(availableNow=True)
        writer.start().awaitTermination()

    def lines(self, spark: SparkSession) -> DataFrame:
        """The stream of lines: line, read_at, text."""
        stream = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.bootstrap_servers)
            .option("subscribe", self.lines_topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", self.max_offsets_per_trigger)
            .load()
        )
        return stream.select(f.from_json(f.col("value").cast("string"), LINE_SCHEMA).alias("line")).select("line.*")

    def counts(self, lines: DataFrame) -> DataFrame:
        """How often each word comes in each window: window, word, count."""
        words = f.explode(f.regexp_extract_all(f.lower("text"), f.lit(WORD), f.lit(0)))
        found = lines.withWatermark("read_at", self.watermark).select("read_at", words.alias("word"))
        return found.groupBy(f.window("read_at", self.window), "word").count()


def parse(arguments: Sequence[str]) -> Publish | Count:
    """The command that these arguments ask for; ends the process with a usage message where they ask for none."""
    parser = argparse.ArgumentParser(prog="word_counts", description="Count the words of a text that is read aloud.")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--bootstrap-servers", default="localhost:9092", metavar="HOST:PORT[,...]")
    common.add_argument("--lines-topic", default="book-lines", metavar="TOPIC", help="topic of the lines")
    commands = parser.add_subparsers(dest="command", required=True)

    publish = commands.add_parser("publish", parents=[common], help="write a text to a topic, line by line")
    publish.add_argument("--text", type=Path, default=BOOK, metavar="FILE", help="default: Frankenstein")
    publish.add_argument("--start", default="2024-01-01T20:00:00Z", metavar="TIME", help="when the reader begins")
    publish.add_argument("--seconds-per-line", type=int, default=5, metavar="N")

    count = commands.add_parser("count", parents=[common], help="count the words of that topic, in windows of time")
    count.add_argument("--counts-topic", default="book-words", metavar="TOPIC", help="topic of the counts")
    count.add_argument("--checkpoint", type=Path, default=Path("word-counts-checkpoint"), metavar="DIR")
    count.add_argument("--window", default="1 hour", metavar="DURATION")
    count.add_argument("--watermark", default="10 minutes", metavar="DURATION")
    count.add_argument("--max-offsets-per-trigger", type=int, default=10_000, metavar="N", help="lines in a batch")
    count.add_argument("--follow", action="store_true", help="go on when all lines are counted")

    given = vars(parser.parse_args(arguments))
    return (Publish if given.pop("command") == "publish" else Count)(**given)


def session() -> SparkSession:
    """The Spark that spark-submit set up, or one of this process's own."""
    builder = SparkSession.builder.appName("word-counts").config("spark.sql.session.timeZone", "UTC")
    # Windows and words of one book are few, and each partition is a task in every batch.
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    if not os.environ.keys() & {"PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"}:
        # Nobody chose the connector: Spark itself resolves the one of its version, and keeps it in the user's Ivy
        # cache.
        builder = builder.config("spark.jars.packages", CONNECTOR)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


def main(arguments: Sequence[str]) -> None:
    command = parse(arguments)
    spark = session()
    try:
        command.run(spark)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
