"""Jars by name, with a Maven that only pretends: it says what it was asked, and writes a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jvm import maven

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <groupId>test</groupId><artifactId>{name}</artifactId><version>{version}</version>
</project>"""
MAVEN = """#!/bin/sh
echo "$@" >> {log}
for word in "$@"; do
  case $word in -DoutputDirectory=*) echo jar > "${{word#*=}}/one.jar" ;; esac
done
exit {code}
"""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")


def install_maven(tmp_path: Path, code: int = 0) -> Path:
    """Puts the pretended Maven on the path; returns the file with a line for each run."""
    program = tmp_path / "bin" / "mvn"
    program.parent.mkdir(exist_ok=True)
    log = tmp_path / "maven.log"
    log.touch()
    program.write_text(MAVEN.format(log=log, code=code))
    program.chmod(0o755)
    return log


def write_pom(tmp_path: Path, name: str = "thing", version: str = "1.2") -> Path:
    pom = tmp_path / "pom.xml"
    pom.write_text(POM.format(name=name, version=version))
    return pom


def test_jars_are_resolved_once(tmp_path: Path) -> None:
    log, pom = install_maven(tmp_path), write_pom(tmp_path)
    folder = maven.jars(pom)
    assert folder == maven.jars(pom)
    assert folder.name.startswith("thing-1.2-")
    assert folder.parent == maven.cache_folder() == tmp_path / "cache" / "kwire"
    assert [file.name for file in folder.iterdir()] == ["one.jar"]
    assert len(log.read_text().splitlines()) == 1


def test_a_changed_pom_is_resolved_anew(tmp_path: Path) -> None:
    install_maven(tmp_path)
    assert maven.jars(write_pom(tmp_path)) != maven.jars(write_pom(tmp_path, version="1.3"))


def test_what_maven_leaves_when_it_fails_is_not_taken_for_jars(tmp_path: Path) -> None:
    pom = write_pom(tmp_path)
    install_maven(tmp_path, code=1)
    with pytest.raises(maven.JavaError, match=r"Maven could not resolve pom\.xml"):
        maven.jars(pom)
    assert [path.name for path in maven.cache_folder().iterdir()] == ["maven.lock"]
    install_maven(tmp_path, code=0)
    assert [file.name for file in maven.jars(pom).iterdir()] == ["one.jar"]


def test_processes_that_ask_at_the_same_time_share_one_resolution(tmp_path: Path) -> None:
    log, pom = install_maven(tmp_path), write_pom(tmp_path)
    code = f"from pathlib import Path; from jvm import maven; print(maven.jars(Path({str(pom)!r})))"
    root = Path(maven.__file__).parents[1]
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=root, text=True) for _ in range(4)
    ]
    folders = {process.communicate()[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert folders == {f"{maven.jars(pom)}\n"}
    assert len(log.read_text().splitlines()) == 1


def test_without_maven_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(maven.JavaError, match="apt-get install maven"):
        maven.jars(write_pom(tmp_path))


def test_without_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(maven.JavaError, match="openjdk-17"):
        maven.java_program("java")
