"""The ratios as pictures: a row for each load, least to greatest and the median, of a fresh broker and a steady one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Pairs


@dataclass(frozen=True, slots=True)
class Picture:
    """Of the figures whose names match `figures` and no earlier picture's."""

    name: str
    title: str
    figures: str
    more_is_better: bool = False


PICTURES = (
    Picture("produced", "Records/s produced", r"produced records/s", more_is_better=True),
    Picture("consumed", "Records/s consumed", r"consumed records/s$", more_is_better=True),
    Picture("cpu-produced", "Broker's CPU time per record produced", r"CPU s per M produced"),
    Picture("cpu-consumed", "Broker's CPU time per record consumed", r"CPU s per M consumed"),
    Picture("cpu", "Broker's CPU time", r"CPU|s CPU"),
    Picture("memory", "Broker's memory", r"(MB|KB)(?!/s)"),
    Picture("throughput", "Throughput", r".*/s", more_is_better=True),
    Picture("files", "Files open", r"files open"),
    Picture("latency-produced", "p99 from send to callback while producing", r"ms produced, p99$"),
    Picture("latency", "Latency", r"ms "),
    Picture("time", "Time", r""),
)
_LEFT_OUT = re.compile(
    r"CPU s per GB (produced|consumed)|ms produced, p(50|99\.9)$|records/s beside|MB of log|client's CPU"
)
"""Of these the ratio is that of the CPU time per record, or a picture has the p99, or they are not the broker's."""
_AGE = re.compile(r"(fresh|steady): ")
_OF_AGE = {"fresh": (-0.17, "white"), "steady": (0.17, None), "": (0.0, None)}
"""Where in its row, and what fills the mark: the colour of its line where nothing else."""
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20)
_GOOD, _BAD = "#1b7837", "#b2182b"


def picture_of(figure: str) -> Picture | None:
    """None where none shows it."""
    if _LEFT_OUT.match(figure):
        return None
    return next(picture for picture in PICTURES if re.match(picture.figures, figure))


@dataclass(frozen=True, slots=True)
class _Mark:
    row: str
    figure: str
    age: str
    ratio: float
    least: float
    greatest: float


def draw(results: Sequence[Pairs], folder: Path) -> list[Path]:
    """Writes NAME.png for each picture that has figures; returns the files."""
    marks: dict[Picture, list[_Mark]] = {picture: [] for picture in PICTURES}
    for result in results:
        age = _AGE.match(result.step)
        load = _AGE.sub("", result.step)
        for figure, _, _, ratio, least, greatest in result.rows():
            picture = picture_of(figure)
            if picture is not None and least > 0:
                marks[picture].append(_Mark(load, figure, age[1] if age else "", ratio, least, greatest))
    return [_draw(picture, found, folder) for picture, found in marks.items() if found]


def _draw(picture: Picture, marks: Sequence[_Mark], folder: Path) -> Path:
    from matplotlib.figure import Figure

    alike = len({mark.figure for mark in marks}) == 1
    rows = list(dict.fromkeys(mark.row if alike else f"{mark.row}: {mark.figure}" for mark in marks))
    figure = Figure(figsize=(9, 1.2 + 0.24 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for mark in marks:
        beside, filling = _OF_AGE[mark.age]
        place = rows.index(mark.row if alike else f"{mark.row}: {mark.figure}") + beside
        color = _GOOD if (mark.ratio >= 1 if picture.more_is_better else mark.ratio <= 1) else _BAD
        axes.plot([mark.least, mark.greatest], [place, place], color=color, linewidth=1.5)
        axes.plot([mark.ratio], [place], "o", color=color, markerfacecolor=filling or color, markersize=4.5)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    ticks = [tick for tick in _TICKS if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    aged = "; hollow: fresh, full: steady" if any(mark.age for mark in marks) else ""
    side = "right" if picture.more_is_better else "left"
    figure.suptitle(f"{picture.title}, kwire / Apache Kafka ({side} of the line is better{aged})", fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    path = folder / f"{picture.name}.png"
    figure.savefig(path, dpi=110)
    return path
