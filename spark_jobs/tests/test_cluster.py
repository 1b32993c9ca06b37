"""A job on a Spark cluster, a master and two workers, of which one is killed on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jvm.spark import INSTALLED
from jvm.spark_cluster import SparkCluster
from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess
from spark_jobs.tests import nyc, topics
from spark_jobs.tests.jobs import JobProcess, batches
from spark_jobs.tests.producing import Sent, send

pytestmark = pytest.mark.xdist_group("spark-2")

SCHEMA = Path(__file__).with_name("flight.schema.json")
STEP = 250
EVERY = 41
"""Each of so many flights is of the 13th month."""


def test_quality_on_two_workers(kwire_broker: BrokerProcess, kwire_topic_factory: TopicFactory, tmp_path: Path) -> None:
    source = kwire_topic_factory(partitions=4)
    good, bad = kwire_topic_factory(partitions=4), kwire_topic_factory(partitions=4)
    rows = [{**row, "month": 13} if number % EVERY == 0 else row for number, row in enumerate(nyc.every(STEP))]
    values = [json.dumps(row).encode() for row in rows]
    send(kwire_broker.bootstrap, source, [Sent(number % 4, b"", value) for number, value in enumerate(values)])
    state = tmp_path / "state"
    arguments = [source, good, bad, "-b", kwire_broker, "--schema", SCHEMA, "--checkpoint", state]
    arguments += ["--max-offsets-per-trigger", 300]
    with SparkCluster(INSTALLED, tmp_path) as cluster:
        on_both = {"folder": tmp_path, "submit": True, "settings": cluster.settings()}
        with JobProcess("quality", *arguments, **on_both) as job:
            job.wait_until(lambda: len(batches(state)) >= 1)
            cluster.kill_worker(1)
            job.finish()
    assert len(batches(state)) >= len(values) // 300
    for folder in cluster.folders:
        assert list(folder.glob("app-*/*/spark_jobs.zip")), "no executor ran functions of the job there"
    # What the killed one had under way was done again by the other.
    expected = {values[number] for number in range(0, len(values), EVERY)}
    assert {record.value for record in topics.records(kwire_broker.bootstrap, bad)} == expected
    assert {record.value for record in topics.records(kwire_broker.bootstrap, good)} == set(values) - expected
