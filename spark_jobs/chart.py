"""A chart of windows: the last value of each key of a topic such as `windows` writes, as PNG and as one HTML page.

    python -m spark_jobs.chart delays --value delay --png delays.png
    python -m spark_jobs.chart delays --value delay --value flights --by origin --html delays.html --title "Delays"

A record is JSON with window_start and with numbers; there is a plot for each --value, with a line for each group: all
different values of the fields in --by, or of all other fields but window_end. Of many groups, those with the largest
sums of the first value are drawn. The page holds the picture itself, and a table of what it shows.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
import pandas as pd
from matplotlib.figure import Figure
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_jobs.command_line import Run, job
from spark_jobs.faults import Fault

START = "window_start"
GROUP = "group"


@job("chart", __doc__)
@click.argument("topic")
@click.option("--value", "values", multiple=True, required=True, metavar="FIELD", help="To draw; may be repeated.")
@click.option("--by", multiple=True, metavar="FIELD", help="A line for each of its values; may be repeated.")
@click.option("--top", type=click.IntRange(min=1), default=10, metavar="N", help="Most lines in a plot.")
@click.option("--title", metavar="TEXT", help="The name of the topic if not given.")
@click.option("--png", type=click.Path(dir_okay=False, writable=True, path_type=Path), metavar="FILE")
@click.option("--html", type=click.Path(dir_okay=False, writable=True, path_type=Path), metavar="FILE")
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
    if png is None and html is None:
        raise click.UsageError("--png, --html, or both")
    run.cluster.demand(run.spark, topic)
    rows = [row.value for row in last_values(run.cluster.read(run.spark, topic)).collect()]
    found = largest(table_of(topic, rows, values, by), values[0], top)
    picture = drawn(found, values, title or topic)
    if png is not None:
        png.write_bytes(picture)
    if html is not None:
        html.write_text(page_of(found, values, title or topic, picture))


def last_values(records: DataFrame) -> DataFrame:
    """The last value of each key, as text; not of keys whose last value is null, which deletes them."""
    latest = f.max_by(f.col("value").cast("string"), f.struct("timestamp", "offset"))
    return records.groupBy("key").agg(latest.alias("value")).where("value IS NOT NULL")


def table_of(topic: str, rows: Sequence[str], values: Sequence[str], by: Sequence[str]) -> pd.DataFrame:
    """START, GROUP and the values, by START. Raises Fault where a row has no such thing."""
    found = []
    for text in rows:
        try:
            row = json.loads(text)
            start = pd.Timestamp(row[START])
            groups = [row[name] for name in by] if by else [row[name] for name in row if name not in _no_group(values)]
            found.append([start, ", ".join(map(str, groups)), *(_number(row[name]) for name in values)])
        except (ValueError, KeyError, TypeError) as error:
            raise Fault(f"a record of {topic} cannot be drawn ({error!r}): {text[:200]}") from None
    if not found:
        raise Fault(f"{topic} has no records")
    return pd.DataFrame(found, columns=[START, GROUP, *values]).sort_values([START, GROUP], ignore_index=True)


def _no_group(values: Sequence[str]) -> set[str]:
    return {START, "window_end", *values}


def _number(value: float | None) -> float:
    """Nothing is a gap in the line."""
    return float("nan") if value is None else float(value)


def largest(table: pd.DataFrame, value: str, top: int) -> pd.DataFrame:
    """The rows of the groups with the largest sums of that value."""
    return table[table[GROUP].isin(table.groupby(GROUP)[value].sum().nlargest(top).index)]


def drawn(table: pd.DataFrame, values: Sequence[str], title: str) -> bytes:
    """A PNG."""
    figure = Figure(figsize=(12, 1 + 4 * len(values)), layout="constrained")
    figure.suptitle(title)
    for plot, value in zip(figure.subplots(len(values), squeeze=False, sharex=True)[:, 0], values, strict=True):
        for group, rows in table.groupby(GROUP):
            plot.plot(rows[START], rows[value], label=str(group), marker=".", linewidth=1)
        plot.set_ylabel(value)
        plot.grid(alpha=0.3)
        if any(table[GROUP]):
            plot.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100)
    return picture.getvalue()


def page_of(table: pd.DataFrame, values: Sequence[str], title: str, picture: bytes) -> str:
    """A page that needs no other file."""
    shown = table.to_html(index=False, border=0, na_rep="", columns=[START, GROUP, *values])
    return _PAGE.format(title=escape(title), picture=base64.b64encode(picture).decode(), table=shown)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font-family: sans-serif; margin: 2em; }}
img {{ max-width: 100%; }}
td, th {{ padding: 0 1em; text-align: right; }}
</style>
</head>
<body>
<h1>{title}</h1>
<img alt="{title}" src="data:image/png;base64,{picture}">
<details><summary>What it shows</summary>
{table}
</details>
</body>
</html>
"""


if __name__ == "__main__":
    main()
