"""`python -m benchmarks.guard`: counts what a request costs, and compares it with what it cost before.

Exit code 1 where a path got dearer. `--update` writes the new costs down.
"""

from __future__ import annotations

import argparse
import json
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
            print(f"{name:48} {what:19} {count:12,.1f}{was}")
    if update:
        others = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
        KNOWN.write_text(json.dumps({**others, VERSION: found}, indent=1) + "\n")
        return 0
    if not before:
        print(f"nothing is known for Python {VERSION}: --update writes it down", file=sys.stderr)
        return 1
    dearer = worse_again(before, found)
    for line in dearer:
        print(line, file=sys.stderr)
    return 1 if dearer else 0


def known() -> dict[str, Costs]:
    """What this version of Python was found to need; empty where nothing was written down for it."""
    costs: dict[str, dict[str, Costs]] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    return costs.get(VERSION, {})


def worse(before: dict[str, Costs], found: dict[str, Costs]) -> list[str]:
    """What got dearer, and what nothing was known of, a line each."""
    lines = []
    for name, costs in found.items():
        for what, count in costs.items():
            if what not in before.get(name, {}):
                lines.append(f"{name}: {what} are {count:,.1f}, of which nothing was known: --update writes it down")
            elif count > before[name][what] * TOLERANCE[what]:
                lines.append(f"{name}: {what} were {before[name][what]:,.1f}, are {count:,.1f}")
    return lines


def worse_again(before: dict[str, Costs], found: dict[str, Costs]) -> list[str]:
    """As `worse`, of what is so when it is measured once more: what a broker does besides, now and then (it begins with
    retention and checkpoints 30 s after its start), may fall into one measurement."""
    names = {line.partition(": ")[0] for line in worse(before, found)}
    again = {case.name: measure(case) for case in CASES if case.name in names}
    return worse(before, again)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
