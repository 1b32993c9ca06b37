"""A standalone Spark cluster on the loopback interface: a master and its workers, each a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from jvm.spark import JAVA_OPTIONS, Spark

_READY = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")
_START_S = 120.0
_ENVIRONMENT = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1"}


class SparkCluster:
    """Started by entering it as a context manager; leaving it kills what still runs.

    Files of the processes go to `folder`: their logs, and below `worker-N` what the executors of that worker wrote.
    """

    def __init__(self, spark: Spark, folder: Path, workers: int = 2) -> None:
        self._spark = spark
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.folders = [folder / f"worker-{number}" for number in range(workers)]
        """Of the workers."""
        self.master = ""
        """What `spark.master` has to say."""

    def settings(self) -> dict[str, str]:
        """For a job that is to run here, with an executor of one core on each worker."""
        return {
            "spark.master": self.master,
            "spark.cores.max": str(len(self.folders)),
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        }

    def kill_worker(self, number: int) -> None:
        """SIGKILL, for its executors too."""
        _kill(self._processes[1 + number])

    def _start(self, kind: str, name: str, *arguments: str) -> Path:
        log = self._folder / f"{name}.log"
        program = self._spark.home / "bin/spark-class"
        command = [str(program), f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
        with log.open("wb") as output:
            self._processes.append(
                subprocess.Popen(
                    [*command, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=os.environ | self._spark.environment() | _ENVIRONMENT,
                    cwd=self._folder,
                    start_new_session=True,
                )
            )
        return log

    def _wait(self, log: Path, sign: re.Pattern[str]) -> str:
        """What the sign's first group, or all of it, says once it is in the log of the last process."""
        deadline = time.monotonic() + _START_S
        while (found := sign.search(log.read_text(errors="replace"))) is None:
            if self._processes[-1].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no Spark cluster: {log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.05)
        return found[found.re.groups]

    def __enter__(self) -> SparkCluster:
        try:
            self.master = self._wait(self._start("Master", "master"), _READY)
            for folder in self.folders:
                options = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder)]
                self._wait(self._start("Worker", folder.name, *options, self.master), _REGISTERED)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *details: object) -> None:
        for process in self._processes:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
