"""`python -m tests.storage.crash 5000`: as many examples of the model, others each time, until one fails."""

import logging
import sys

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from .test_crash_model import CrashMachine

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    every_check = list(HealthCheck)
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    run_state_machine_as_test(
        CrashMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            database=None,
            suppress_health_check=every_check,
        ),
    )
    print(f"{examples} examples passed")
