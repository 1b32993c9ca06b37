"""The log of a lake, without Spark."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from spark_jobs.delta_log import FOLDER, File, Log, Snapshot, created, reached
from spark_jobs.faults import Fault

WRITERS = 4
COMMITS = 40


def append(lake: Path, writer: int) -> None:
    """Adds files, each in a version of its own, and counts them."""
    log = Log(lake)
    for number in range(COMMITS):
        file = File(f"at=%3A x/{writer}-{number}.parquet", {"at": ": x"}, 10, number)
        log.commit(
            "WRITE", lambda present, file=file, number=number: [file.added(new=True), reached(f"{writer}", number)]
        )


def test_no_version_is_lost_where_many_write(tmp_path: Path) -> None:
    Log(tmp_path).commit("CREATE TABLE", lambda present: created("{}", ["at"]))
    threads = [threading.Thread(target=append, args=(tmp_path, writer)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    snapshot = Log(tmp_path).snapshot()
    assert snapshot.version == WRITERS * COMMITS
    assert len(snapshot.files) == WRITERS * COMMITS
    assert snapshot.progress == {str(writer): COMMITS - 1 for writer in range(WRITERS)}
    assert snapshot.files["at=%3A x/3-7.parquet"] == File("at=%3A x/3-7.parquet", {"at": ": x"}, 10, 7)
    assert not list((tmp_path / FOLDER).glob(".*"))


def test_paths_are_those_of_delta(tmp_path: Path) -> None:
    """The escape of a folder's name is escaped once more, as in any URL."""
    Log(tmp_path).commit("WRITE", lambda present: [File("at=%3A x/1.parquet", {"at": ": x"}, 10, 1).added(new=True)])
    lines = (tmp_path / FOLDER / "00000000000000000000.json").read_text().splitlines()
    assert json.loads(lines[1])["add"]["path"] == "at=%253A%20x/1.parquet"


def test_a_commit_sees_what_another_one_did_meanwhile(tmp_path: Path) -> None:
    first, second = Log(tmp_path), Log(tmp_path)
    seen = []

    def late(present: Snapshot) -> list:
        seen.append(dict(present.progress))
        if len(seen) == 1:
            second.commit("WRITE", lambda present: [reached("second", 1)])
        return [reached("first", 1)] if len(seen) < 3 else []

    first.commit("WRITE", late)
    assert seen == [{}, {"second": 1}]
    assert Log(tmp_path).snapshot().progress == {"first": 1, "second": 1}


def test_what_only_another_delta_understands_is_refused(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.commit("UPGRADE", lambda present: [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}])
    with pytest.raises(Fault, match="does not understand"):
        Log(tmp_path).snapshot()
    (tmp_path / FOLDER / "00000000000000000000.json").rename(tmp_path / FOLDER / "00000000000000000001.json")
    with pytest.raises(Fault, match="lacks its first versions"):
        Log(tmp_path).snapshot()
