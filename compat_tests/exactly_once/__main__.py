"""`python -m compat_tests.exactly_once --rounds 300 --seed 0`: as many rounds, a seed each, until one fails.

The rounds go through the clients in turn, unless `--client` names one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from compat_tests.exactly_once.crash import BROKER_SETTINGS, Lost, Round
from compat_tests.exactly_once.workers import CLIENTS, program
from kwire.testing.process import BrokerProcess

FRESH_AFTER = 25
"""Rounds with the same broker: its data grow, and with them each start."""


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.exactly_once")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first round; the others follow")
    parser.add_argument("--client", choices=CLIENTS)
    given = parser.parse_args(arguments)
    seeds = range(given.seed, given.seed + given.rounds)
    with tempfile.TemporaryDirectory() as scratch:
        workers = [program(client, Path(scratch, client)) for client in ([given.client] if given.client else CLIENTS)]
        for first in seeds[::FRESH_AFTER]:
            with BrokerProcess(BROKER_SETTINGS) as broker:
                for seed in range(first, min(first + FRESH_AFTER, seeds.stop)):
                    began = time.monotonic()
                    worker = workers[seed % len(workers)]
                    try:
                        Round(broker, seed, worker, Path(scratch)).run()
                    except Lost as error:
                        print(f"seed {seed}, {worker.client}: {error}", file=sys.stderr)
                        return 1
                    print(f"seed {seed}, {worker.client}: {time.monotonic() - began:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
