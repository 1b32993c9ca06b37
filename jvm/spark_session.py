"""A pytest plugin: one Spark for all tests that are content with one, and the Spark of jobs that have processes of
their own. They belong into the xdist group "spark"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from jvm.spark import SPARK_4_0, SPARK_4_2, Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_VERSIONS = {"4.0": SPARK_4_0, "4.2": SPARK_4_2}


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "the Spark for jobs in processes of their own, where a test can do with any (4.2: make spark)"
    parser.addoption("--spark", choices=sorted(_VERSIONS), default="4.0", help=text)


@pytest.fixture(scope="session")
def job_spark(request: pytest.FixtureRequest) -> Spark:
    """The Spark that the command line names."""
    return _VERSIONS[request.config.getoption("--spark")]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests: it takes seconds to start."""
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as environment:
        for name, value in SPARK_4_0.environment().items():
            environment.setenv(name, value)
        environment.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
        session = SparkSession.builder.config(map=SPARK_4_0.settings(tmp_path_factory.mktemp("spark"))).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        gateway = session.sparkContext._gateway
        session.stop()
        # Stopping leaves the JVM, which ends when its standard input does; the tests that follow may want its memory.
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
