"""`python -m compat_tests.durability --rounds 300 --seed 0`: as many rounds, a seed each, until one fails.

Every other round writes (`rounds.py`: idempotent, plain and transactional producers); those between copy in
transactions (`compat_tests.exactly_once`), with each client in turn. `--only` names one kind or client.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from compat_tests.durability.rounds import SETTINGS, WriteRound
from compat_tests.exactly_once.crash import BROKER_SETTINGS, Lost, Round
from compat_tests.exactly_once.workers import CLIENTS, program
from kwire.testing.process import BrokerProcess

FRESH_AFTER = 24
"""Rounds with the same broker: its data grow, and with them each start."""

WRITE = "write"

Play = Callable[[BrokerProcess, int], None]


def kinds(only: str | None, scratch: Path) -> Sequence[tuple[str, Play]]:
    """The kinds of rounds, in the order in which they take turns: every other one writes."""

    def write(broker: BrokerProcess, seed: int) -> None:
        WriteRound(broker, seed).run()

    def copying(client: str) -> Play:
        worker = program(client, scratch / client)
        return lambda broker, seed: Round(broker, seed, worker, scratch).run()

    writing: tuple[str, Play] = (WRITE, write)
    if only == WRITE:
        return [writing]
    if only is not None:
        return [(only, copying(only))]
    return [kind for client in CLIENTS for kind in (writing, (client, copying(client)))]


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.durability")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first round; the others follow")
    parser.add_argument("--only", choices=[WRITE, *CLIENTS])
    given = parser.parse_args(arguments)
    seeds = range(given.seed, given.seed + given.rounds)
    with tempfile.TemporaryDirectory() as scratch:
        turns = kinds(given.only, Path(scratch))
        for first in seeds[::FRESH_AFTER]:
            with BrokerProcess({**BROKER_SETTINGS, **SETTINGS}) as broker:
                for seed in range(first, min(first + FRESH_AFTER, seeds.stop)):
                    began = time.monotonic()
                    name, play = turns[seed % len(turns)]
                    try:
                        play(broker, seed)
                    except Lost as error:
                        print(f"seed {seed}, {name}: {error}", file=sys.stderr)
                        return 1
                    print(f"seed {seed}, {name}: {time.monotonic() - began:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
