from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.spark.kafka_tables import KafkaTables


@pytest.fixture
def kafka(spark: SparkSession, kwire_broker: Any) -> KafkaTables:
    """Topics of the session's broker as tables of Spark."""
    from compat_tests.spark.kafka_tables import KafkaTables

    return KafkaTables(spark, kwire_broker.bootstrap)
