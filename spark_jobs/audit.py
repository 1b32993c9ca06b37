"""Counts what is in topics, against the offsets that the brokers tell, and how far groups are behind; writes a report.

    python -m spark_jobs.audit flights --report ./report
    python -m spark_jobs.audit flights weather --report ./report --group dashboards --group archive
    python -m spark_jobs.audit flights --report ./report --id "get_json_object(string(value), '$.id')"
    python -m spark_jobs.audit flights --report ./report \\
        --id "string(try_element_at(filter(headers, h -> h.key = 'event-id'), 1).value)"

The report is a folder: audit.html, which needs nothing beside it, and its pictures as PNG files, one for each topic
(topic-NAME.png) and one of all groups (lag.png). In it, for each partition: offsets and what is at them, records, their
sizes and times; gaps; duplicates; records per minute; for each group its lag. What deserves a look is on top, and on
standard output.

Gaps are told apart as far as a reader can: records of aborted transactions and of open ones can be read, and are
counted. Offsets that have no record are the ends of transactions, or were compacted away, or are lost; the topic's
cleanup.policy and the length of a gap say which it may be, and the report says what it does not know.

Duplicates are records with the same key and value, unless --id gives, in SQL over the columns of a record, what two
records must not share; where it is null, the record has no identity. Columns are key, value (both binary), headers,
topic, partition, offset, timestamp. Groups are all that have committed offsets for one of the topics, unless --group
names some.

The offsets are asked for first, and all between them is counted, so a topic may be written to meanwhile; where
retention deletes records before they are read, the job ends with an error. Nothing but the report is written.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click

from spark_jobs.auditing import plots
from spark_jobs.auditing.counts import Counting
from spark_jobs.auditing.numbers import Audit
from spark_jobs.auditing.offsets import bounds, commits, policies
from spark_jobs.auditing.page import page
from spark_jobs.command_line import Run, job
from spark_jobs.faults import Fault
from spark_jobs.topics import Admin


@job("audit", __doc__)
@click.argument("topics", nargs=-1, required=True)
@click.option(
    "--report", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Folder of the report; made anew."
)
@click.option("--id", "identity", metavar="SQL", help="What two records must not share; key and value unless given.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Only this consumer group; may be repeated.")
def main(run: Run, topics: tuple[str, ...], report: Path, identity: str | None, groups: tuple[str, ...]) -> None:
    try:
        report.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Fault(f"{report}: {error.strerror}") from None
    audit = look(run, topics, identity, groups)
    for finding in audit.findings():
        print(f"{finding.weight}: {finding.text}")
    print(f"{sum(topic.records for topic in audit.topics):,} records counted: {write(audit, report)}")


def look(run: Run, topics: tuple[str, ...], identity: str | None, groups: tuple[str, ...]) -> Audit:
    """Finds out all that is told. Raises Fault."""
    partitions = run.cluster.demand(run.spark, *topics)
    made_at = datetime.now(UTC)
    with Admin(run.spark, run.cluster) as admin:
        # Commits first: a group that reads on meanwhile would seem to be beyond the end.
        committed = commits(admin, partitions, groups)
        found = bounds(admin, partitions)
        kept = policies(admin, sorted(partitions))
    counting = Counting(run.spark, run.cluster, found, identity)
    try:
        counts, lags = counting.topics(kept), counting.lags(committed)
    finally:
        counting.close()
    return Audit(run.cluster.bootstrap_servers, made_at, identity or "key and value", counts, lags)


def write(audit: Audit, folder: Path) -> Path:
    """Writes page and pictures; returns the page."""
    pictures = {topic.name: plots.of_topic(topic) for topic in audit.topics}
    for name, picture in pictures.items():
        (folder / f"topic-{name}.png").write_bytes(picture)
    lags = plots.of_lags(audit.lags) if any(lag.offsets is not None for lag in audit.lags) else None
    if lags is not None:
        (folder / "lag.png").write_bytes(lags)
    target = folder / "audit.html"
    target.write_text(page(audit, pictures, lags), encoding="utf-8")
    return target


if __name__ == "__main__":
    main()
