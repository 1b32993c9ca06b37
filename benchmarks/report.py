"""Medians, ratios, and the table for the README."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import machine


@dataclass
class Pairs:
    """The figures of one step: per pair one of each side."""

    step: str
    kwire: list[dict[str, float]] = field(default_factory=list)
    other: list[dict[str, float]] = field(default_factory=list)
    disturbed: int = 0
    """Measurements during which other processes used much of the machine, three times in a row."""
    version: str = ""
    """kwire's; empty in results of which it was not kept."""
    measured: str = ""
    """The date (ISO 8601) of its beginning, likewise."""

    def rows(self) -> list[tuple[str, float, float, float, float, float]]:
        """(figure, kwire's median, the other's, the ratio's median, least and greatest); ratios pair by pair.

        NaN where a side has a pair of 0, which is less than can be told (of whole ms, say): no ratio can be, and that
        of the other pairs would be one of chosen pairs.
        """
        rows = []
        for name in self.kwire[0]:
            ours = [pair[name] for pair in self.kwire]
            theirs = [pair[name] for pair in self.other]
            ratios = [a / b for a, b in zip(ours, theirs, strict=True)] if all(ours + theirs) else [math.nan]
            rows.append(
                (
                    name,
                    statistics.median(ours),
                    statistics.median(theirs),
                    statistics.median(ratios),
                    min(ratios),
                    max(ratios),
                )
            )
        return rows


def markdown(results: list[Pairs], other: str = "Apache Kafka") -> str:
    """One row a figure; the ratio is kwire / the `other`."""
    lines = [
        f"| step | figure | kwire | {other} | kwire / {other} (least to greatest) |",
        "|---|---|---:|---:|---:|",
    ]
    for result in results:
        step = f"{result.step} (disturbed)" if result.disturbed else result.step
        for name, ours, theirs, ratio, least, greatest in result.rows():
            told = "–" if math.isnan(ratio) else f"{ratio:.2f} ({least:.2f} to {greatest:.2f})"
            lines.append(f"| {step} | {name} | {_number(ours)} | {_number(theirs)} | {told} |")
    return "\n".join(lines)


Options = Mapping[str, object]
"""What the steps were measured with, as JSON can keep it."""


def write(results: list[Pairs], folder: Path, options: Options) -> None:
    """`results.json` with every pair, `results.md` with the table."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": machine.described(),
        "options": dict(options),
        "steps": [
            {
                "step": each.step,
                "version": each.version,
                "measured": each.measured,
                "kwire": each.kwire,
                "apache_kafka": each.other,
                "disturbed": each.disturbed,
            }
            for each in results
        ],
    }
    (folder / "results.json").write_text(json.dumps(document, indent=1))
    (folder / "results.md").write_text(markdown(results) + "\n")


def read(folder: Path, options: Options) -> list[Pairs]:
    """What `write` wrote there; nothing where it did not.

    ValueError where that was measured with other options, on another machine, or with other versions of what kwire is
    measured beside and with: the same step may be another measurement then.
    """
    try:
        document = json.loads((folder / "results.json").read_text())
    except FileNotFoundError:
        return []
    for known, now in ((document.get("options"), dict(options)), (document["machine"], machine.described())):
        if known != now:
            raise ValueError(f"{folder} was measured with {known}, not with {now}")
    return [
        Pairs(
            step["step"],
            step["kwire"],
            step["apache_kafka"],
            step["disturbed"],
            step["version"],
            step["measured"],
        )
        for step in document["steps"]
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
