"""Jobs as users run them: in the tests' own Spark, where that will do, or in a process that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest

from jvm.spark import INSTALLED, Spark

ROOT = Path(__file__).parents[2]
PATIENCE_S = 600.0


def run(job: click.Command, *arguments: object) -> Any:
    """Runs a job in this process and its session; what a user would see as an exit code is a SystemExit."""
    return job.main([str(each) for each in arguments], standalone_mode=False)


def batches(checkpoint: Path) -> set[int]:
    """The numbers of those that are complete."""
    return {int(file.name) for file in (checkpoint / "commits").glob("*") if file.name.isdigit()}


def undone(checkpoint: Path) -> None:
    """As a crash leaves it just before the query notes its last batch."""
    last = max(batches(checkpoint))
    for name in (str(last), f".{last}.crc"):
        (checkpoint / "commits" / name).unlink()


class JobProcess:
    """One run of a job by `spark-submit`, or by `python -m`, in a process group of its own: the JVM and its Python are
    the driver. Leaving it as a context manager kills what still runs.

    `name` is that of the module; `spark` is None for what needs none; `settings` of Spark win over those of all tests,
    and `environment` over the variables that there are.
    Standard output and standard error go to `log` in `folder`, the working folder.
    """

    def __init__(
        self,
        name: str,
        *arguments: object,
        folder: Path,
        spark: Spark | None = INSTALLED,
        submit: bool = False,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        words = [str(each) for each in arguments]
        settings = {**(spark.settings(folder) if spark else {}), **(settings or {})}
        if spark is None:
            command = [sys.executable, "-m", f"spark_jobs.{name}", *words]
        elif submit:
            command = spark.submit_command(ROOT / f"spark_jobs/{name}.py", *words, settings=settings)
        else:
            command = [str(spark.python), "-m", f"spark_jobs.{name}", *words]
            command += [word for key, value in settings.items() for word in ("--spark", f"{key}={value}")]
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    **(spark.environment() if spark else {}),
                    "PYTHONPATH": str(ROOT),
                    **(environment or {}),
                },
                cwd=folder,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """All that it wrote."""
        return self.log.read_text(errors="replace")

    def finish(self, code: int = 0) -> str:
        """Waits until the job has ended, with that exit code; returns what it wrote."""
        assert self.process.wait(PATIENCE_S) == code, self.said[-5000:]
        return self.said

    def wait_until(self, true: Callable[[], bool]) -> None:
        """Returns as soon as that is so; the job must not have ended by then."""
        wait_for(true, self)

    def threads(self) -> str:
        """Ends the driver; returns all that it wrote, at the end what the threads of its JVM were at."""
        os.killpg(self.process.pid, signal.SIGQUIT)
        deadline = time.monotonic() + 10.0
        while "JNI global refs" not in self.said and time.monotonic() < deadline:  # the last that it writes
            time.sleep(0.01)
        with suppress(ProcessLookupError):  # Python has ended, the JVM may have followed
            self.kill()
        return self.said

    def kill(self) -> None:
        """SIGKILL for the whole driver."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> JobProcess:
        return self

    def __exit__(self, *details: object) -> None:
        if self.process.poll() is None:
            self.kill()


def wait_for(happened: Callable[[], bool], job: JobProcess | None = None) -> None:
    """Returns when it has happened; fails when the job ends before that, or when it takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert job is None or job.process.poll() is None, f"ended with {job.process.returncode}: {job.said[-5000:]}"
        if time.monotonic() > deadline:
            pytest.fail(f"nothing happened: {job.threads()[-30_000:] if job else ''}")
        # What a test waits for, to kill the job in the midst of it, may last for milliseconds only.
        time.sleep(0.01)
