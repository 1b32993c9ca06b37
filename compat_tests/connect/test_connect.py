"""Lines from file to topic to file: by a worker alone, and by two that keep what they know in topics."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from compat_tests.confluent.driver import ConfluentAdmin
from compat_tests.connect.files import Files
from compat_tests.connect.worker import Worker

pytestmark = pytest.mark.xdist_group("java")

LINES = 500


@pytest.fixture
def files(kwire_broker: Any, kwire_topic: str, tmp_path: Path) -> Files:
    return Files(kwire_broker.bootstrap, kwire_topic, tmp_path)


def test_a_worker_alone_goes_on_where_it_stopped(kwire_broker: Any, files: Files, tmp_path: Path) -> None:
    connectors = {f"{tmp_path.name}-source": files.source, f"{tmp_path.name}-sink": files.sink}
    settings = {"offset.storage.file.filename": tmp_path / "offsets"}
    files.write(LINES)
    with Worker(kwire_broker.bootstrap, tmp_path, settings, connectors) as worker:
        worker.until(files.complete, "the lines before the stop")
        worker.stop()
        files.write(LINES)
        worker.start()
        worker.until(files.complete, "the lines after the stop")
        worker.stop()
    assert files.read() == files.written
    assert files.arrived() == files.written


def test_workers_share_the_work_and_keep_what_they_know_in_topics(
    kwire_broker: Any, files: Files, tmp_path: Path, new_name: Callable[[], str]
) -> None:
    cluster = new_name()
    topics = {f"{what}.storage.topic": f"{cluster}-{what}s" for what in ("config", "offset", "status")}
    settings: dict[str, object] = {"group.id": cluster, "exactly.once.source.support": "enabled", **topics}
    settings |= {f"{what}.storage.replication.factor": 1 for what in ("config", "offset", "status")}
    settings |= {"offset.storage.partitions": 5, "status.storage.partitions": 2}
    # A killed worker is out of the group as soon as a broker allows, and its work is somebody else's at once.
    settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000, "scheduled.rebalance.max.delay.ms": 0}
    source, sink = f"{cluster}-source", f"{cluster}-sink"
    with ExitStack() as running:
        workers = [running.enter_context(Worker(kwire_broker.bootstrap, tmp_path, settings)) for _ in range(2)]
        workers[0].create(source, {**files.source, "exactly.once.support": "required"})
        workers[0].create(sink, files.sink)
        files.write(LINES)
        workers[0].until(files.complete, "the lines before the kill")
        places = {workers[0].task_runs_on(source), workers[0].task_runs_on(sink)}
        assert places == {worker.id for worker in workers}

        # Lines are on their way when the worker that reads them is killed.
        lost, other = sorted(workers, key=lambda worker: worker.id != workers[0].task_runs_on(source))
        files.write(LINES)
        lost.kill()
        files.write(LINES)
        other.until(files.complete, "the lines after the kill")
        assert other.task_runs_on(source) == other.id

        other.stop()
        files.write(LINES)
        other.start()
        other.until(files.complete, "the lines after the stop")
        other.until(lambda: _position(other, source) == files.size(), "the offset of all lines")
        other.stop()
    assert files.read() == files.written
    admin = ConfluentAdmin(kwire_broker.bootstrap)
    for topic in topics.values():
        assert admin.topic_configs(topic)["cleanup.policy"].value == "compact"


def _position(worker: Worker, source: str) -> int:
    (offset,) = worker.ask(f"/connectors/{source}/offsets")["offsets"]
    return offset["offset"]["position"]
