"""Pictures of an audit, as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import matplotlib.dates as dates
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from spark_jobs.auditing.numbers import Lag, TopicCounts
from spark_jobs.pictures import DPI, PALE, count_axis, dress, duration, png, time_axis

COLOURS = {
    "records": "#2b6cb0",
    "aborted": "#dd7a2f",
    "open": "#ecc04a",
    "markers": "#8795a5",
    "compaction": "#d2d9e1",
    "unclear": "#c53030",
}
"""By what is at an offset; the page has the same."""
BLUES = LinearSegmentedColormap.from_list("blues", ["#a9cbea", "#2b6cb0", "#153a63"])
MOST_PARTITIONS = 8
"""Colours that an eye tells apart: of more partitions the sum is drawn."""
MOST_BARS = 24
"""Rows of a picture; of more, those with most."""


def of_topic(topic: TopicCounts) -> bytes:
    """Records per minute over time, what the offsets of each partition are, and the sizes."""
    rows = min(len(topic.partitions), MOST_BARS)
    below = max(2.4, 0.34 * rows + 1.1)
    figure = Figure(figsize=(11, 3.2 + below), dpi=DPI, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.12, w_pad=0.12)
    upper, lower = figure.add_gridspec(2, 1, height_ratios=[3.2, below])
    _rates(figure.add_subplot(upper), topic)
    left, right = lower.subgridspec(1, 2, width_ratios=[3, 2])
    _offsets(figure.add_subplot(left), topic)
    _sizes(figure.add_subplot(right), topic)
    return png(figure)


def of_lags(lags: Sequence[Lag]) -> bytes:
    """How far each group is behind, by partition; the worst, where there are many."""
    known = [lag for lag in lags if lag.offsets is not None]
    shown = sorted(known, key=lambda lag: -(lag.offsets or 0))[:MOST_BARS]
    shown.sort(key=lambda lag: (lag.commit.group, lag.commit.topic, lag.commit.partition))
    figure = Figure(figsize=(11, 0.34 * max(len(shown), 3) + 1.3), dpi=DPI, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.12, w_pad=0.12)
    axes = figure.add_subplot()
    places = range(len(shown))
    unread = [lag.unread or 0 for lag in shown]
    rest = [max(0, (lag.offsets or 0) - count) for lag, count in zip(shown, unread, strict=True)]
    axes.barh(places, unread, color=COLOURS["records"], height=0.66, label="records to read")
    if any(rest):
        axes.barh(places, rest, left=unread, color=COLOURS["compaction"], height=0.66, label="gaps, aborted, open")
    for place, lag in zip(places, shown, strict=True):
        axes.annotate(
            f"{lag.offsets:,}",
            (max(0, lag.offsets or 0), place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=PALE,
            fontsize=8,
        )
    axes.set_yticks(places, [f"{lag.commit.group}  ·  {lag.commit.topic}/{lag.commit.partition}" for lag in shown])
    axes.set_ylim(*_rows(len(shown)))
    axes.margins(x=0.08)
    dress(axes, "Lag of consumer groups, in offsets", grid="x", count=len(shown), of=len(known))
    count_axis(axes, "x")
    _legend(axes)
    return png(figure)


def _rates(axes: Axes, topic: TopicCounts) -> None:
    dress(axes, f"{topic.name}: records per minute, in slots of {duration(topic.width)}, UTC", grid="y")
    if not topic.slots:
        _empty(axes)
        return
    begins = np.arange(min(topic.slots), max(topic.slots) + topic.width, topic.width)
    numbers = [part.bounds.partition for part in topic.partitions]
    series = {f"partition {number}": [number] for number in numbers}
    if len(numbers) > MOST_PARTITIONS:
        series = {f"all {len(numbers)} partitions": numbers}
    left = dates.date2num([datetime.fromtimestamp(begin / 1000, UTC) for begin in begins])
    days = topic.width / 86_400_000
    floor = np.zeros(len(begins))
    for place, (name, members) in enumerate(series.items()):
        counts = [sum(topic.slots.get(int(begin), {}).get(number, 0) for number in members) for begin in begins]
        heights = np.array(counts) * 60_000 / topic.width
        colour = BLUES(place / (len(series) - 1)) if len(series) > 1 else COLOURS["records"]
        axes.bar(left, heights, width=days, bottom=floor, align="edge", color=colour, label=name, linewidth=0)
        floor = floor + heights
    time_axis(axes)
    axes.set_xlim(left[0], left[-1] + days)
    count_axis(axes, "y")
    _legend(axes)


def _offsets(axes: Axes, topic: TopicCounts) -> None:
    shown = sorted(topic.partitions, key=lambda part: -part.offsets)[:MOST_BARS]
    shown.sort(key=lambda part: part.bounds.partition)
    places = range(len(shown))
    floor = [0] * len(shown)
    for kind, colour in COLOURS.items():
        widths = [topic.explained(part)[kind] for part in shown]
        if any(widths):
            axes.barh(places, widths, left=floor, color=colour, height=0.66, label=kind)
        floor = [below + width for below, width in zip(floor, widths, strict=True)]
    axes.set_yticks(places, [f"partition {part.bounds.partition}" for part in shown])
    axes.set_ylim(*_rows(len(shown)))
    dress(axes, "What the offsets hold", grid="x", count=len(shown), of=len(topic.partitions))
    count_axis(axes, "x")
    _legend(axes)


def _sizes(axes: Axes, topic: TopicCounts) -> None:
    dress(axes, "Sizes of records", grid="y")
    if not topic.sizes:
        _empty(axes)
        return
    # One more to either side: a single bar would have no measure.
    powers = range(min(topic.sizes) - (min(topic.sizes) >= 0), max(topic.sizes) + 2)
    axes.bar(powers, [topic.sizes.get(power, 0) for power in powers], color=COLOURS["records"], width=0.86)
    named = powers[:: len(powers) // 12 + 1]
    axes.set_xticks(named, [_least(power) for power in named])
    axes.set_xlabel("bytes, at least", color=PALE, fontsize=8, loc="right")
    count_axis(axes, "y")


def _rows(count: int) -> tuple[float, float]:
    """Limits for bars from the top down, none of which fills a picture because it is alone."""
    return max(count, 3) - 0.4, -0.6


def _least(power: int) -> str:
    """The least size of a bar."""
    if power < 0:
        return "0"
    unit, name = ((20, "M"), (10, "k"), (0, ""))[0 if power >= 20 else 1 if power >= 10 else 2]
    return f"{2 ** (power - unit)}{name}"


def _legend(axes: Axes) -> None:
    handles, _ = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=min(len(handles), 8),
            frameon=False,
            fontsize=8,
            labelcolor=PALE,
            handlelength=0.9,
            handleheight=0.9,
            columnspacing=1.2,
            borderaxespad=0.2,
        )


def _empty(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no records", transform=axes.transAxes, ha="center", va="center", color=PALE)
    axes.set_xticks([])
    axes.set_yticks([])
