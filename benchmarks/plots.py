"""The ratios as pictures: one for each kind of figure, a row for each step, least to greatest, and the median."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import Pairs

KINDS = {
    "throughput": "Throughput: kwire / Apache Kafka (right of the line is better)",
    "time": "Time: kwire / Apache Kafka (left of the line is better)",
    "cpu": "CPU time of the broker: kwire / Apache Kafka (left of the line is better)",
    "memory": "Memory of the broker: kwire / Apache Kafka (left of the line is better)",
}
_GOOD, _BAD = "#1b7837", "#b2182b"


def kind_of(figure: str) -> str:
    """Of KINDS; the unit is in a figure's name."""
    if figure.startswith(("CPU", "s CPU")):
        return "cpu"
    if figure.startswith(("MB at most", "MB idle", "MB after", "KB")):
        return "memory"
    return "throughput" if "/s" in figure else "time"


def draw(results: Sequence[Pairs], folder: Path) -> list[Path]:
    """Writes KIND.png for each kind that has figures; returns the files."""
    from matplotlib.figure import Figure

    written = []
    for kind, title in KINDS.items():
        rows = [
            (f"{result.step}: {name}", ratio, least, greatest)
            for result in results
            for name, _, _, ratio, least, greatest in result.rows()
            if kind_of(name) == kind and least > 0
        ]
        if not rows:
            continue
        figure = Figure(figsize=(11, 1.2 + 0.28 * len(rows)), layout="constrained")
        axes = figure.subplots()
        for place, (_, ratio, least, greatest) in enumerate(rows):
            better = ratio >= 1 if kind == "throughput" else ratio <= 1
            axes.plot([least, greatest], [place, place], color=_GOOD if better else _BAD, linewidth=2)
            axes.plot([ratio], [place], "o", color=_GOOD if better else _BAD, markersize=5)
        axes.axvline(1, color="black", linewidth=1)
        axes.set_xscale("log")
        axes.set_yticks(range(len(rows)), [name for name, *_ in rows], fontsize=8)
        axes.invert_yaxis()
        axes.set_title(title, fontsize=10)
        axes.grid(axis="x", which="both", alpha=0.3)
        path = folder / f"{kind}.png"
        figure.savefig(path, dpi=120)
        written.append(path)
    return written
