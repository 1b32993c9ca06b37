"""Java programs that are ours: compiled for the moment, and run in JVMs that live for seconds or minutes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from jvm import apache_kafka, maven

_OPTIONS = ("-Xmx1g", *apache_kafka.SHORT_LIVED)


def command(sources: Iterable[Path], class_path: str, folder: Path, options: Sequence[str] = _OPTIONS) -> list[str]:
    """Compiles a program and gives the command line that runs it, up to and without the name of its main class.

    `options` are the JVM's. Its classes and what its JVMs write to temporary files stay in `folder`. Raises JavaError
    where there is no Java, CalledProcessError where the program is not right: the compiler has said why.
    """
    classes = folder / "classes"
    classes.mkdir(parents=True)
    compiler = [maven.java_program("javac"), "-proc:none", "-d", str(classes), "-cp", class_path]
    subprocess.run([*compiler, *map(str, sources)], check=True)
    java = [maven.java_program("java"), *options, *apache_kafka.QUIET]
    return [*java, maven.scratch_option(folder), "-cp", f"{classes}:{class_path}"]
