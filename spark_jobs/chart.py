"""A chart of what `windows` wrote: the last value of each key, as a picture (PNG), and as a page with a table (HTML).

    python -m spark_jobs.chart departures --png departures.png
    python -m spark_jobs.chart delays --value delay --by origin --title "Delays, in minutes" --html delays.html

A record is a JSON object with window_start, window_end and numbers; its key is one with window_start and the groups.
There is a plot for each --value, and in it a line for each group, which is interrupted where a window is missing;
windows of different lengths, as sessions are, are drawn from their start to their end. Of many groups those with the
largest sums of the first value are drawn. Times are in UTC.

Nothing is written to Kafka: run it again for a chart of what is there by then.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_jobs import pictures
from spark_jobs.charting import COLOURS, chart_of, figure_of, page
from spark_jobs.command_line import Run, job
from spark_jobs.faults import Fault

FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


@job("chart", __doc__)
@click.argument("topic")
@click.option(
    "--value", "values", multiple=True, metavar="FIELD", help="To draw; may be repeated. All numbers unless given."
)
@click.option(
    "--by",
    multiple=True,
    metavar="FIELD",
    help="A line for each of its values; may be repeated. All that is in the key unless given.",
)
@click.option("--top", type=click.IntRange(1, len(COLOURS)), default=len(COLOURS), metavar="N", help="Most lines.")
@click.option("--title", metavar="TEXT", help="The name of the topic unless given.")
@click.option("--png", type=FILE, metavar="FILE", help="Write a picture there.")
@click.option("--html", type=FILE, metavar="FILE", help="Write a page there, with the picture in it.")
def main(
    run: Run,
    topic: str,
    values: tuple[str, ...],
    by: tuple[str, ...],
    top: int,
    title: str | None,
    png: Path | None,
    html: Path | None,
) -> None:
    files = [file for file in (png, html) if file is not None]
    if not files:
        raise click.UsageError("--png, --html, or both")
    for file in files:
        if not file.parent.is_dir():
            raise Fault(f"{file.parent} is no folder")
    run.cluster.demand(run.spark, topic)
    rows = last_values(run.cluster.read(run.spark, topic)).collect()
    chart = chart_of(topic, [(row.key, row.value) for row in rows], values, by, top, title)
    drawn = pictures.png(figure_of(chart))
    if png is not None:
        png.write_bytes(drawn)
    if html is not None:
        html.write_text(page(chart, drawn, f"{topic} · {run.cluster.bootstrap_servers}"), encoding="utf-8")
    print(f"chart: {len(chart.windows):,} windows of {topic} drawn: {', '.join(map(str, files))}")


def last_values(records: DataFrame) -> DataFrame:
    """Keys and their last values, as text; not those whose last value is null, which deletes them."""
    value = f.max_by(f.struct("timestamp", f.col("value").cast("string").alias("value")), "offset")
    latest = records.groupBy("key", "partition").agg(value.alias("last"))
    # A key is in one partition, unless they have become more since.
    found = (
        latest.groupBy("key").agg(f.max_by("last.value", "last.timestamp").alias("value")).where("value IS NOT NULL")
    )
    return found.select(f.col("key").cast("string").alias("key"), "value")


if __name__ == "__main__":
    main()
