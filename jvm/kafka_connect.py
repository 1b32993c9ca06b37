"""Kafka Connect: its workers are among Apache Kafka's jars, its connectors for files are a plugin of their own."""

from __future__ import annotations

from pathlib import Path

from jvm import maven

POM = Path(__file__).with_name("connect-file.xml")


def plugin_path() -> Path:
    """The folder with the connectors for files, as a worker takes it in `plugin.path`."""
    return maven.jars(POM)
