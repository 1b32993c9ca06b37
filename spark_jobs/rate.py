"""A rate that all tasks of a job keep together: rows pass when the driver, which counts them, lets them.

    with RateGate(1000, spark) as gate:
        slow = rows.mapInArrow(gate.passing, rows.schema)

Tasks ask the driver over a connection of their own, wherever they run, at most twenty times a second.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pyarrow as pa
from pyspark.sql import SparkSession

_STEPS_PER_SECOND = 20
"""Of all tasks together."""
_BUFFER = "spark.sql.execution.pandas.udf.buffer.size"


class RateGate(ThreadingTCPServer):
    """Open while it is entered; queries have to be started in that time, since a setting goes with them."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, rows_per_second: int, spark: SparkSession) -> None:
        settings = spark.sparkContext.getConf()
        host = str(settings.get("spark.driver.host"))
        super().__init__((str(settings.get("spark.driver.bindAddress", host)), 0), _Asking)
        self.token = secrets.token_hex()
        self._spark = spark
        self._host = host
        self._rows_per_second = rows_per_second
        self._lock = threading.Lock()
        self._free_at = 0.0

    @property
    def passing(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """For `mapInArrow`."""
        step = max(1, self._rows_per_second // _STEPS_PER_SECOND)
        return _Passing(self._host, self.server_address[1], self.token, step).__call__

    def delay(self, rows: int) -> float:
        """Seconds until so many rows may pass: when all those asked for earlier have had their time."""
        with self._lock:
            now = time.monotonic()
            start = max(now, self._free_at)
            self._free_at = start + rows / self._rows_per_second
            return start - now

    def __enter__(self) -> RateGate:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        # Python workers would hold back what is less than their buffer, which may be seconds' worth of rows.
        self._spark.conf.set(_BUFFER, "64")
        return self

    def __exit__(self, *details: object) -> None:
        self._spark.conf.unset(_BUFFER)
        self.shutdown()
        self.server_close()


class _Asking(StreamRequestHandler):
    """A task's connection: a line with the token, then one with a number of rows, answered by seconds, and so on."""

    server: RateGate

    def handle(self) -> None:
        if hmac.compare_digest(self.rfile.readline().strip(), self.server.token.encode()):
            for line in self.rfile:
                self.wfile.write(f"{self.server.delay(int(line))}\n".encode())


@dataclass(frozen=True)
class _Passing:
    """The part of a task."""

    host: str
    port: int
    token: str
    step: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with socket.create_connection((self.host, self.port)) as connection, connection.makefile("rw") as gate:
            gate.write(f"{self.token}\n")
            for batch in batches:
                for start in range(0, batch.num_rows, self.step):
                    part = batch.slice(start, self.step)
                    gate.write(f"{part.num_rows}\n")
                    gate.flush()
                    time.sleep(float(gate.readline()))
                    yield part
