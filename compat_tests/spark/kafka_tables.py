"""Topics as Spark has them: tables of records to read, to write and to stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

RECORD = "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, partition INT"
"""What the sink takes."""


class KafkaTables:
    """Topics of one broker."""

    def __init__(self, spark: SparkSession, bootstrap: str) -> None:
        self.spark = spark
        self.options = {"kafka.bootstrap.servers": bootstrap, "includeHeaders": "true"}

    def rows(self, records: Sequence[Sequence[Any]]) -> DataFrame:
        """Records of key, value, headers and partition, in one task, so that each partition gets them in this order."""
        return self.spark.createDataFrame(list(records), RECORD).coalesce(1)

    def write(self, topic: str, records: DataFrame, **options: object) -> None:
        """Appends the records to the topic."""
        records.write.format("kafka").options(**self.options, topic=topic, **_texts(options)).save()

    def read(self, topic: str, **options: object) -> DataFrame:
        """The topic as a table, all of it unless the options say otherwise."""
        return self.spark.read.format("kafka").options(**self.options, subscribe=topic, **_texts(options)).load()

    def collect(self, topic: str, **options: object) -> list[Row]:
        """The rows of that table in the order of their offsets."""
        return sorted(self.read(topic, **options).collect(), key=lambda row: (row.partition, row.offset))

    def stream(self, topic: str, **options: object) -> DataFrame:
        """The topic as a stream, from its beginning unless the options say otherwise."""
        options = {"subscribe": topic, "startingOffsets": "earliest", **options}
        return self.spark.readStream.format("kafka").options(**self.options, **_texts(options)).load()

    def run(self, stream: DataFrame, topic: str, checkpoint: Path, **options: object) -> None:
        """Streams what there is now into the topic, key and value of each row, going on where the checkpoint is."""
        writer = stream.writeStream.format("kafka").options(**self.options, topic=topic, **_texts(options))
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()


def _texts(options: Mapping[str, object]) -> dict[str, str]:
    """Options as Spark takes them; names of Kafka's own options have dots, which `_` stands for in `kafka_…`."""
    return {
        name.replace("_", ".") if name.startswith("kafka_") else name: str(value) for name, value in options.items()
    }
