"""Topics as Spark has them: tables and streams of records, and what a broker knows of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from spark_jobs.faults import Fault
from spark_jobs.session import CONNECTOR

WAIT_MS = 15_000
"""How long a broker that does not answer is waited for before a job begins. Once it runs, the clients inside Spark
try again for as long as their own settings say."""


@dataclass(frozen=True)
class Reading:
    """How a job reads its topics."""

    max_offsets_per_trigger: int | None = None
    """Most records in a batch of a stream."""
    committed_only: bool = False
    allow_data_loss: bool = False

    @property
    def options(self) -> dict[str, object]:
        """As the connector takes them."""
        options: dict[str, object] = {"failOnDataLoss": not self.allow_data_loss}
        if self.committed_only:
            options["kafka.isolation.level"] = "read_committed"
        if self.max_offsets_per_trigger is not None:
            options["maxOffsetsPerTrigger"] = self.max_offsets_per_trigger
        return options


@dataclass(frozen=True)
class Cluster:
    """The brokers that a job reads from or writes to."""

    bootstrap_servers: str = "localhost:9092"
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of the Kafka clients inside Spark, by Kafka's names."""

    @property
    def options(self) -> dict[str, str]:
        """As the connector takes them."""
        given = {**self.settings, "bootstrap.servers": self.bootstrap_servers}
        return {f"kafka.{name}": value for name, value in given.items()}

    def read(self, spark: SparkSession, topic: str, **options: object) -> DataFrame:
        """The topic as a table: key, value, topic, partition, offset, timestamp, timestampType, headers."""
        return spark.read.format("kafka").options(**self._of(topic, options)).load()

    def stream(self, spark: SparkSession, topic: str, reading: Reading) -> DataFrame:
        """The topic as a stream of such rows, from its beginning."""
        found = self._of(topic, {"startingOffsets": "earliest", **reading.options})
        return spark.readStream.format("kafka").options(**found).load()

    def sink(self, records: DataFrame, topic: str | None = None) -> DataStreamWriter:
        """Of a stream of records, into that topic, or each into the one that its column `topic` names."""
        named = {} if topic is None else {"topic": topic}
        return records.writeStream.format("kafka").options(**self.options, **named)

    def _of(self, topic: str, options: Mapping[str, object]) -> dict[str, str]:
        given = {"subscribe": topic, "includeHeaders": True, **options}
        texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}
        return {**self.options, **texts}

    def partitions(self, spark: SparkSession) -> dict[str, int]:
        """How many each topic has. Raises Fault where no broker answers.

        Spark itself would try for minutes, and end with a hundred lines.
        """
        with Admin(spark, self) as admin:
            return admin.partitions()

    def demand(self, spark: SparkSession, *topics: str) -> dict[str, int]:
        """How many partitions these topics have. Raises Fault where no broker answers, or where one is not there."""
        found = self.partitions(spark)
        missing = sorted(set(topics) - found.keys())
        if missing:
            raise Fault(f"{self.bootstrap_servers} has no topic {', '.join(missing)}")
        return {topic: found[topic] for topic in topics}

    def identity(self, spark: SparkSession) -> str | None:
        """The cluster's id, which is the same under any address. Raises Fault where no broker answers."""
        with Admin(spark, self) as admin:
            return admin.cluster_id()

    def topic_id(self, spark: SparkSession, topic: str) -> str:
        """What tells this topic from another one of the same name, earlier or elsewhere. Raises Fault as `demand`."""
        self.demand(spark, topic)
        with Admin(spark, self) as admin:
            return admin.topic_id(topic)

    def provide(self, spark: SparkSession, topic: str, partitions: int, configs: Mapping[str, str]) -> int:
        """Creates the topic where it is missing; returns how many partitions it has. Raises Fault."""
        with Admin(spark, self) as admin:
            present = admin.partitions().get(topic)
            if present is None:
                admin.create(topic, partitions, configs)
            return partitions if present is None else present

    def ends(self, spark: SparkSession, topic: str, *, committed_only: bool) -> dict[int, int]:
        """Of each partition, the offset that its next record will have, or of the first record that may still be
        aborted. Raises Fault."""
        with Admin(spark, self) as admin:
            return admin.ends(topic, committed_only=committed_only)


class Admin:
    """The admin client of the connector's own jars, with the settings that the connector will have."""

    def __init__(self, spark: SparkSession, cluster: Cluster) -> None:
        self._cluster = cluster
        self.jvm: Any = spark.sparkContext._jvm
        """Where Java's classes are found by their names."""
        self.client: Any = None
        """Java's `Admin`, while this is entered; calls of it go through `asked`."""

    def __enter__(self) -> Admin:
        properties = self.jvm.java.util.Properties()
        for name, value in {
            **self._cluster.settings,
            "bootstrap.servers": self._cluster.bootstrap_servers,
            "default.api.timeout.ms": str(WAIT_MS),
            "request.timeout.ms": str(WAIT_MS),
        }.items():
            properties.setProperty(name, value)
        kind = self.jvm.org.apache.kafka.clients.admin.AdminClient
        if not isinstance(kind, JavaClass):
            raise Fault(f"this Spark has no connector for Kafka: spark-submit --packages {CONNECTOR}")
        self.client = self.asked(lambda: self.jvm.org.apache.kafka.clients.admin.AdminClient.create(properties))
        return self

    def partitions(self) -> dict[str, int]:
        found = self.asked(lambda: self.client.listTopics().names().get())
        told = self.asked(lambda: self.client.describeTopics(found).allTopicNames().get())
        return {name: told[name].partitions().size() for name in told}

    def cluster_id(self) -> str | None:
        return self.asked(lambda: self.client.describeCluster().clusterId().get())

    def topic_id(self, topic: str) -> str:
        told = self.asked(lambda: self.client.describeTopics([topic]).allTopicNames().get())
        return str(told[topic].topicId().toString())

    def ends(self, topic: str, *, committed_only: bool) -> dict[int, int]:
        kafka = self.jvm.org.apache.kafka
        told = self.asked(lambda: self.client.describeTopics([topic]).allTopicNames().get())
        latest = self.jvm.java.util.HashMap()
        for partition in told[topic].partitions():
            place = kafka.common.TopicPartition(topic, partition.partition())
            latest.put(place, kafka.clients.admin.OffsetSpec.latest())
        level = kafka.common.IsolationLevel.valueOf("READ_COMMITTED" if committed_only else "READ_UNCOMMITTED")
        options = kafka.clients.admin.ListOffsetsOptions(level)
        found = self.asked(lambda: self.client.listOffsets(latest, options).all().get())
        return {place.partition(): found[place].offset() for place in found}

    def create(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        """With the broker's default of replicas."""
        none = self.jvm.java.util.Optional
        new = self.jvm.org.apache.kafka.clients.admin.NewTopic(topic, none.of(partitions), none.empty())
        new.configs(self.jvm.java.util.HashMap(dict(configs)))
        self.asked(lambda: self.client.createTopics([new]).all().get())

    def asked(self, ask: Callable[[], Any]) -> Any:
        """What a call gives; raises Fault where the brokers refuse or do not answer."""
        try:
            return ask()
        except Py4JJavaError as error:
            cause = _innermost(error)
            if "TimeoutException" in cause:
                raise Fault(f"no broker answers at {self._cluster.bootstrap_servers}") from None
            raise Fault(f"{self._cluster.bootstrap_servers}: {cause}") from None

    def __exit__(self, *details: object) -> None:
        self.client.close()


def _innermost(error: Py4JJavaError) -> str:
    """What the last cause in Java says."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString())
