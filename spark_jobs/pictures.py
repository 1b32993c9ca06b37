"""What pictures of jobs have in common: colours, axes, lengths of time, PNG."""

from __future__ import annotations

import io

import matplotlib.dates as dates
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

# What is written there are names of the user's, in which a dollar is a dollar.
rcParams["text.parse_math"] = False

INK = "#26323f"
PALE = "#6b7885"
GRID = "#e6eaee"
DPI = 160
THOUSANDS = FuncFormatter(lambda value, _: f"{value:,.0f}")


def dress(axes: Axes, title: str, *, grid: str, count: int = 0, of: int = 0) -> None:
    """`grid` is the axis that has lines; `count` is how much is shown of what there is, where that is not all."""
    axes.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold", pad=8)
    if count < of:
        axes.set_title(f"the {count} with most of {of}", loc="right", color=PALE, fontsize=8)
    axes.spines[["top", "right", "left" if grid == "y" else "bottom"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#b9c2cb")
    axes.grid(axis=grid, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=PALE, labelsize=8.5)


def count_axis(axes: Axes, which: str) -> None:
    """Few marks, large numbers short; for an axis whose limits are known."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    largest = max(map(abs, axes.get_xlim() if which == "x" else axes.get_ylim()))
    # From here on numbers are shown as whole ones, so none may be between them.
    axis.set_major_locator(MaxNLocator(6, integer=largest >= 6))
    if largest >= 100_000:
        axis.set_major_formatter(EngFormatter(sep=""))
    elif largest >= 6:
        axis.set_major_formatter(THOUSANDS)


def time_axis(axes: Axes) -> None:
    """The x axis, in dates and times as short as they can be told apart."""
    locator = dates.AutoDateLocator(minticks=4, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes.xaxis.get_offset_text().set_fontsize(8.5)


def duration(ms: int) -> str:
    """In the largest unit that is whole."""
    for unit, name in ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1000, "second")):
        if ms % unit == 0:
            count = ms // unit
            return f"{count} {name}{'s' if count > 1 else ''}"
    return f"{ms} ms"


def png(figure: Figure) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format="png", facecolor="white")
    return target.getvalue()
