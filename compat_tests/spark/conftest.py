from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.spark.kafka_tables import KafkaTables


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests: it takes seconds to start."""
    from pyspark.sql import SparkSession

    from jvm import spark as setup

    with pytest.MonkeyPatch.context() as environment:
        for name, value in setup.environment().items():
            environment.setenv(name, value)
        environment.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
        session = SparkSession.builder.config(map=setup.settings(tmp_path_factory.mktemp("spark"))).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        gateway = session.sparkContext._gateway
        session.stop()
        # Stopping leaves the JVM, which ends when its standard input does; the tests that follow may want its memory.
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


@pytest.fixture
def kafka(spark: SparkSession, kwire_broker: Any) -> KafkaTables:
    """Topics of the session's broker as tables of Spark."""
    from compat_tests.spark.kafka_tables import KafkaTables

    return KafkaTables(spark, kwire_broker.bootstrap)
