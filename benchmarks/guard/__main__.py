"""`python -m benchmarks.guard`: counts what a request costs, and compares it with what it cost before.

Exit code 1 where a path got dearer, and where it got so much cheaper that what is known of it would let it get dearer
again. `--update` writes the new costs down.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

from benchmarks.guard.cases import CASES, Costs, measure

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
KNOWN = Path(__file__).with_name("costs.json")
TOLERANCE = {
    "Python calls": 1.05,
    "C calls": 1.05,
    "system calls": 1.1,
    "large allocations": 1.2,
    "bytes in large ones": 1.1,
    "bytes in small ones": 1.1,
    "bytes at most": 1.2,
}
"""Beyond what was counted before: a change may cost a little; what memory holds at its fullest depends on when objects
are freed."""
AT_MOST_MORE = {"Python calls": 2.0, "C calls": 3.0, "system calls": 0.5}
"""A request: where it makes hundreds of calls, one more for each of its partitions would else pass."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard")
    parser.add_argument("--update", action="store_true", help="write down what is measured")
    update = parser.parse_args(arguments).update
    found = {case.name: measure(case) for case in CASES}
    before = known()
    for name, costs in found.items():
        for what, count in costs.items():
            known_count = before.get(name, {}).get(what)
            was = "" if known_count is None else f"   was {known_count:,.1f}"
            print(f"{name:52} {what:19} {count:12,.1f}{was}")
    if update:
        others = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
        KNOWN.write_text(json.dumps({**others, VERSION: found}, indent=1) + "\n")
        return 0
    if not before:
        print(f"nothing is known for Python {VERSION}: --update writes it down", file=sys.stderr)
        return 1
    told = changed_again(before, found)
    for line in told:
        print(line, file=sys.stderr)
    return 1 if told else 0


def known() -> dict[str, Costs]:
    """What this version of Python was found to need; empty where nothing was written down for it."""
    costs: dict[str, dict[str, Costs]] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    return costs.get(VERSION, {})


def changed(before: dict[str, Costs], found: dict[str, Costs]) -> list[str]:
    """What got dearer, what got as much cheaper, and what nothing was known of, a line each."""
    lines = []
    for name, costs in found.items():
        for what, count in costs.items():
            was = before.get(name, {}).get(what)
            if was is None:
                lines.append(f"{name}: {what} are {count:,.1f}, of which nothing was known: --update writes it down")
            elif count > most(what, was):
                lines.append(f"{name}: {what} were {was:,.1f}, are {count:,.1f}")
            elif was > most(what, count):
                lines.append(f"{name}: {what} were {was:,.1f}, are but {count:,.1f}: --update writes it down")
    return lines


def most(what: str, was: float) -> float:
    """What a cost may be that was `was`."""
    return min(was * TOLERANCE[what], was + AT_MOST_MORE.get(what, math.inf))


def changed_again(before: dict[str, Costs], found: dict[str, Costs]) -> list[str]:
    """As `changed`, of what is so when it is measured once more: what a broker does besides, now and then (it begins
    with retention and checkpoints 30 s after its start), may fall into one measurement. And what is not there any
    more."""
    names = {line.partition(": ")[0] for line in changed(before, found)}
    again = {case.name: measure(case) for case in CASES if case.name in names}
    gone = [
        f"{name}: {what} are not counted any more: --update forgets them"
        for name, costs in before.items()
        for what in costs
        if what not in found.get(name, {})
    ]
    return changed(before, again) + gone


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
