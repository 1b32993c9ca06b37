"""Every file, command, option, module and make target that a document names is there."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
from pathlib import Path

import click
import pytest

from compat_tests.readme.documents import DOCUMENTS, ROOT, commands, prose
from jvm import maven
from jvm.spark import POM_4_0
from kwire.cli.app import COMMANDS, app

PLACES = (ROOT, ROOT / "kwire", ROOT / "spark_jobs", ROOT / "benchmarks")
"""Where a document's paths begin."""
ENDINGS = (".py", ".md", ".xml", ".toml", ".yaml", ".txt", "/")
JOB = re.compile(
    r"(?:spark-submit --packages \S+ spark_jobs/(\w+)\.py|(?:\.venv/bin/)?python -m spark_jobs\.(\w+)) (.+)"
)
"""The command line of a Spark job."""
BY_DOCUMENT = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@BY_DOCUMENT
def test_files(document: Path) -> None:
    quoted = [text for text in re.findall(r"`([^`\n]+)`", prose(document)) if text.endswith(ENDINGS)]
    linked = [text for text in re.findall(r"\]\(([^)#]+)", prose(document)) if "://" not in text]
    missing = [
        text
        for text in quoted
        if "<" not in text and " " not in text and not any((place / text).exists() for place in PLACES)
    ]
    assert missing + [text for text in linked if not (document.parent / text).exists()] == []


@BY_DOCUMENT
def test_headings_that_links_go_to(document: Path) -> None:
    text = prose(document)
    headings = [re.sub(r"[^\w -]", "", heading.lower()) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    anchors = {heading.replace(" ", "-") for heading in headings}
    assert [target for target in re.findall(r"\]\(#([^)]+)\)", text) if target not in anchors] == []


@BY_DOCUMENT
def test_make_targets(document: Path) -> None:
    targets = set(re.findall(r"^([a-z][\w.-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {line.split()[1] for line in commands(document) if line.startswith("make ")}
    assert named <= targets


@BY_DOCUMENT
def test_modules_that_python_runs(document: Path) -> None:
    named = re.findall(r"python -m ([a-z_.]+)", "\n".join(commands(document)))
    assert [module for module in named if importlib.util.find_spec(module) is None] == []


def kwires_own() -> list[str]:
    shown = {line.rpartition("|")[2].strip() for document in DOCUMENTS for line in commands(document)}
    found = [re.fullmatch(r"(?:\.venv/bin/)?kwire ([a-z-].*)", line) for line in shown]
    return sorted({line[1] for line in found if line and not line[1].startswith("ready on ")})


@pytest.mark.parametrize("line", kwires_own())
def test_kwires_command_line_is_understood(line: str) -> None:
    """Parsed to the last option, and not run."""
    words = shlex.split(line)
    # A command keeps the help options of the first context that it sees: it must be one like that of a real run.
    context = click.Context(app, info_name=app.name, **app.context_settings)
    while isinstance(context.command, click.Group):
        command = context.command.get_command(context, words.pop(0))
        assert command is not None
        if isinstance(command, click.Group):
            context = click.Context(command, parent=context, info_name=command.name)
        else:
            context = command.make_context(command.name, words, parent=context)


def test_the_table_of_commands() -> None:
    """In the order of `kwire --help`."""
    rest = (ROOT / "README.md").read_text().partition("| command | what it does |\n|---|---|\n")[2]
    table = rest.partition("\n\n")[0]
    assert [line.split("|")[1].strip() for line in table.splitlines()] == list(COMMANDS)


@pytest.mark.parametrize("document", ["README.md", "spark_jobs/README.md", "spark_jobs/word_counts.py"])
def test_sparks_version(document: str) -> None:
    named = re.findall(r"(?:pyspark==|spark-sql-kafka-0-10_2\.13:)(\d[\d.]*)", (ROOT / document).read_text())
    assert set(named) == {maven.version(POM_4_0)}


@pytest.mark.parametrize("document", ["README.md", "spark_jobs/README.md"])
def test_words_are_read_from_where_they_are_counted(document: str) -> None:
    from spark_jobs.word_counts import count

    (target,) = (option.default for option in count.params if option.name == "counts_topic")
    assert any(f"kwire consume {target} " in line for line in commands(ROOT / document))


def test_the_command_lines_of_the_spark_jobs_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsed to the last option, and not run."""
    (tmp_path / "flights").mkdir()
    (tmp_path / "flights.csv").touch()
    (tmp_path / "flight.schema.json").touch()
    monkeypatch.chdir(tmp_path)
    shown = [
        (found[1] or found[2], shlex.split(found[3]))
        for document in ("README.md", "spark_jobs/README.md")
        for line in commands(ROOT / document)
        if (found := JOB.fullmatch(line))
    ]
    table = re.findall(r"^\| `(\w+)` \|", (ROOT / "spark_jobs/README.md").read_text(), re.MULTILINE)
    assert {job for job, _ in shown} == set(table)
    for job, words in shown:
        command, name = importlib.import_module(f"spark_jobs.{job}").main, job
        while isinstance(command, click.Group):
            name, *words = words
            command = command.commands[name]
        command.make_context(name, words)
