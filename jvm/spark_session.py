"""A pytest plugin: one Spark for all tests that are content with one, and the Spark of jobs that have processes of
their own. They belong into the xdist group "spark"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from jvm.spark import INSTALLED, SPARK_4_2, Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=sorted({INSTALLED.version, SPARK_4_2.version}))
def each_spark(request: pytest.FixtureRequest) -> Spark:
    """For jobs in processes of their own: the Spark of this Python, and the newest one that is supported."""
    found = INSTALLED if request.param == INSTALLED.version else SPARK_4_2
    if not found.python.exists():
        pytest.skip(f"no {found.python}: `make spark` sets it up")
    return found


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests: it takes seconds to start."""
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as environment:
        for name, value in INSTALLED.environment().items():
            environment.setenv(name, value)
        environment.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
        session = SparkSession.builder.config(map=INSTALLED.settings(tmp_path_factory.mktemp("spark"))).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        gateway = session.sparkContext._gateway
        session.stop()
        # Stopping leaves the JVM, which ends when its standard input does; the tests that follow may want its memory.
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
