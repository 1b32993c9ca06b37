"""Jars from a Maven registry, resolved by name once and kept in the user's cache folder.

`jars(pom)` gives the folder with every jar that the POM asks for. The folder is named after the POM's own artifact,
version and content, so that a changed POM is a new folder and an old one is never half right. Any number of processes
may ask at the same time: one resolves, under a lock on a file, the others wait for it. A folder appears whole or not
at all.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAMESPACE = "{http://maven.apache.org/POM/4.0.0}"


class JavaError(Exception):
    """Something of Java's is missing or failed; the message says what, and what to do."""


def cache_folder() -> Path:
    """Where resolved jars stay: `kwire` in the user's cache folder (XDG_CACHE_HOME, else ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kwire"


def version(pom: Path) -> str:
    """The POM's own version, which is that of what it resolves."""
    return _text(pom, "version")


def jars(pom: Path) -> Path:
    """The folder of the POM's jars, resolved by Maven when it is not there yet; raises JavaError when that fails."""
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:8]
    folder = cache_folder() / f"{_text(pom, 'artifactId')}-{version(pom)}-{digest}"
    if not folder.exists():
        with _locked(cache_folder() / "maven.lock"):
            if not folder.exists():
                _resolve(pom, folder)
    return folder


def java_program(name: str) -> str:
    """The path of `java` or `javac`, of JAVA_HOME where that is set; raises JavaError when there is none."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which(name, path=str(Path(home) / "bin") if home else None)
    if program is None:
        raise JavaError(
            f"{name} not found: install a JDK 17 (apt-get install openjdk-17-jdk-headless) or set JAVA_HOME"
        )
    return program


def scratch_option(folder: Path) -> str:
    """The option that lets a JVM keep its temporary files in a folder: what a killed JVM leaves goes with that."""
    return f"-Djava.io.tmpdir={folder}"


def _resolve(pom: Path, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaError("mvn not found: install Maven (apt-get install maven)")
    scratch = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={scratch}"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise JavaError(f"Maven could not resolve {pom.name}:\n{done.stdout}{done.stderr}")
        scratch.chmod(0o755)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the file's lock; the kernel releases it whatever becomes of this process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _text(pom: Path, tag: str) -> str:
    found = ElementTree.parse(pom).getroot().findtext(NAMESPACE + tag)
    assert found is not None, f"{pom} has no {tag}"
    return found
