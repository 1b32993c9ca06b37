"""Windows of time with their numbers, as a picture and as a page; without Spark."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spark_jobs.durations import milliseconds
from spark_jobs.faults import Fault
from spark_jobs.pages import document, image, table
from spark_jobs.pictures import DPI, INK, PALE, count_axis, dress, duration, time_axis

START, END = "window_start", "window_end"
COLOURS = (
    *("#2b6cb0", "#dd7a2f", "#2f855a", "#c53030", "#805ad5"),
    *("#8795a5", "#b7891f", "#d53f8c", "#319795", "#26323f"),
)
"""Of lines: an eye tells so many apart."""
LONGEST_NAME = 40
PAGE_STYLE = "summary { cursor: pointer; color: var(--pale); }"


@dataclass(frozen=True)
class Window:
    """A window of one group, with its numbers; NaN for one that is null."""

    start: datetime
    end: datetime
    group: tuple[str, ...]
    numbers: tuple[float, ...]


@dataclass(frozen=True)
class Chart:
    """What is drawn."""

    title: str
    by: tuple[str, ...]
    """The names of the groups' fields."""
    values: tuple[str, ...]
    """The names of the numbers."""
    windows: Sequence[Window]
    """Of the groups that are drawn, by start and group."""
    groups: Sequence[tuple[str, ...]]
    """Those that are drawn, the largest first."""
    of: int
    """How many groups there are."""

    @property
    def length(self) -> timedelta | None:
        """Of every window; None where they differ, as those of sessions do."""
        lengths = {window.end - window.start for window in self.windows}
        return lengths.pop() if len(lengths) == 1 else None

    @property
    def step(self) -> timedelta:
        """From one window to the next, where none is missing and all have one length."""
        starts = sorted({window.start for window in self.windows})
        return min([self.windows[0].end - self.windows[0].start, *(late - early for early, late in pairwise(starts))])


def chart_of(
    topic: str,
    records: Iterable[tuple[str | None, str]],
    values: Sequence[str] = (),
    by: Sequence[str] = (),
    top: int = len(COLOURS),
    title: str | None = None,
) -> Chart:
    """The chart of records, which are keys and values as JSON. Raises Fault where they can't be drawn.

    Unless `by` names some, the groups' fields are those of the key; unless `values` does, numbers are all the others
    that are numbers.
    """
    rows = [(_fields(key), value, _fields(value)) for key, value in records]
    if not rows:
        raise Fault(f"{topic} has no windows")
    key, _, first = rows[0]
    by = tuple(by) or tuple(name for name in key if name != START)
    values = tuple(values) or tuple(
        name for name in first if name not in by and any(_is_number(row.get(name)) for _, _, row in rows)
    )
    if not values:
        raise Fault(f"{topic} has no numbers: {rows[0][1][:200]}")
    windows = []
    for _, text, row in rows:
        try:
            numbers = tuple(_number(row[name]) for name in values)
            windows.append(Window(_time(row[START]), _time(row[END]), tuple(_text(row[name]) for name in by), numbers))
        except KeyError as error:
            raise Fault(f"a record of {topic} has no {error.args[0]}: {text[:200]}") from None
        except ValueError as error:
            raise Fault(f"a record of {topic} can't be drawn, {error}: {text[:200]}") from None
    sums = {window.group: 0.0 for window in windows}
    for window in windows:
        if not math.isnan(window.numbers[0]):
            sums[window.group] += window.numbers[0]
    groups = sorted(sums, key=lambda group: (-sums[group], group))
    shown = set(groups[:top])
    drawn = sorted((window for window in windows if window.group in shown), key=lambda each: (each.start, each.group))
    return Chart(title or topic, by, values, drawn, groups[:top], len(groups))


def _fields(text: str | None) -> dict[str, Any]:
    """Of a JSON object; none of anything else."""
    try:
        found = json.loads(text or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value: Any) -> float:
    if value is not None and not _is_number(value):
        raise ValueError(f"{value!r} is no number")
    return math.nan if value is None else float(value)


def _time(value: Any) -> datetime:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no time")
    time = datetime.fromisoformat(value)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def figure_of(chart: Chart) -> Figure:
    """With a plot for each value."""
    figure = Figure(figsize=(11, 1 + 3.6 * len(chart.values)), dpi=DPI, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.12, w_pad=0.12)
    figure.suptitle(chart.title, x=0.012, ha="left", color=INK, fontsize=14, fontweight="bold")
    plots = figure.subplots(len(chart.values), squeeze=False, sharex=True)[:, 0]
    for place, (axes, value) in enumerate(zip(plots, chart.values, strict=True)):
        # Those with most of the first value.
        dress(axes, f"{value}, {_described(chart)}", grid="y", count=len(chart.groups), of=0 if place else chart.of)
        for colour, group in zip(COLOURS, chart.groups, strict=False):
            _draw(axes, chart, group, place, colour)
        if all(window.numbers[place] >= 0 for window in chart.windows if not math.isnan(window.numbers[place])):
            axes.set_ylim(bottom=0)
        count_axis(axes, "y")
    first, last = chart.windows[0].start, max(window.end for window in chart.windows)
    plots[-1].set_xlim(first - (last - first) / 100, last + (last - first) / 100)
    time_axis(plots[-1])
    if chart.by:
        legend = plots[0].legend(
            title=", ".join(chart.by),
            loc="upper left",
            bbox_to_anchor=(1.005, 1),
            frameon=False,
            fontsize=8.5,
            title_fontsize=8.5,
            labelcolor=PALE,
            alignment="left",
        )
        legend.get_title().set_color(INK)
    return figure


def _described(chart: Chart) -> str:
    if chart.length is None:
        return "windows from their start to their end, UTC"
    every = f", every {_words(chart.step)}" if chart.step < chart.length else ""
    return f"windows of {_words(chart.length)}{every}, UTC"


def _words(length: timedelta) -> str:
    return duration(milliseconds(length))


def _draw(axes: Axes, chart: Chart, group: tuple[str, ...], place: int, colour: str) -> None:
    """The line of a group; `place` is that of the number."""
    windows = [window for window in chart.windows if window.group == group]
    name = ", ".join(group)
    label = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    if chart.length is None:
        heights = [window.numbers[place] for window in windows]
        starts, ends = [window.start for window in windows], [window.end for window in windows]
        axes.hlines(heights, starts, ends, colors=colour, linewidth=2.5, label=label)
        return
    points = list(_with_gaps(windows, chart.step, place))
    times, heights = [time for time, _ in points], [height for _, height in points]
    axes.plot(times, heights, color=colour, linewidth=1.4, marker="o", markersize=2.2, label=label)


def _with_gaps(windows: Sequence[Window], step: timedelta, place: int) -> Iterator[tuple[datetime, float]]:
    """Times and heights of a line, which NaN interrupts where a window is missing."""
    before = None
    for window in windows:
        if before is not None and window.start - before > step:
            yield before + step, math.nan
        yield window.start, window.numbers[place]
        before = window.start


def page(chart: Chart, drawn: bytes, source: str) -> str:
    """A page with the picture, and a table of what it shows; `source` says where it is from."""
    rows = [
        [*(time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") for time in (window.start, window.end)), *window.group]
        + [_shown(number) for number in window.numbers]
        for window in chart.windows
    ]
    shown = table("windows", [START, END, *chart.by, *chart.values], rows, text_columns=2 + len(chart.by))
    body = (
        f'<h1>{escape(chart.title)}</h1><p class="about">{escape(source)} · all times in UTC</p>'
        f'<div class="card">{image(drawn, chart.title)}</div>'
        f'<div class="card"><details><summary>{len(rows):,} windows</summary>{shown}</details></div>'
    )
    return document(chart.title, body, PAGE_STYLE)


def _shown(number: float) -> object:
    if math.isnan(number):
        return "–"
    return int(number) if number.is_integer() else f"{number:.6g}"
