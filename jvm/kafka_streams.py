"""Kafka Streams from its jars: the class path of a program that uses it."""

from __future__ import annotations

from pathlib import Path

from jvm import maven

POM = Path(__file__).with_name("kafka-streams.xml")


def class_path() -> str:
    """Kafka Streams, the Java clients and RocksDB, as `java -cp` takes it."""
    return f"{maven.jars(POM)}/*"
