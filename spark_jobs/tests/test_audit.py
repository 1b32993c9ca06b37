"""An audit of topics with everything planted in them that it must find: what the page says, counted without Spark."""

from __future__ import annotations

import base64
import io
import itertools
import json
import struct
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from matplotlib.image import imread
from pyspark.sql import SparkSession

from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess
from spark_jobs.audit import main
from spark_jobs.auditing.numbers import moment
from spark_jobs.tests import nyc, topics
from spark_jobs.tests.jobs import PATIENCE_S, JobProcess, run
from spark_jobs.tests.producing import Sent, send, send_in_transaction

pytestmark = pytest.mark.xdist_group("spark")

STEP = 100
"""Every 100th flight: 3,368."""
FOREVER = {"retention.ms": -1}
"""Flights of 2013 are older than a broker keeps records by itself."""
REPEATED = range(100, 400, 12)
"""Flights that are sent a second time: to the other partition where their number divides by five."""
LAGGING = "dash & <board>"
"""A group; its name must not break the page."""
READ = 1000
"""How far it has read the first partition."""
SAME_EVENT = 5
"""Flights in a row that have the same id in their headers."""


@dataclass
class Table:
    """A table of the page: a row is the cells by their titles."""

    rows: list[dict[str, str]] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)

    def numbers(self, *names: str) -> list[tuple[int, ...]]:
        return [tuple(int(row[name].replace(",", "")) for name in names) for row in self.rows]


class Page(HTMLParser):
    """What a reader of the page sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[tuple[str, str], Table] = {}
        self.facts: dict[tuple[str, str], str] = {}
        self.findings: list[str] = []
        self.images: list[bytes] = []
        self.links: list[str] = []
        self._section = ""
        self._table = Table()
        self._cells: list[str] = []
        self._text: list[str] = []
        self._fact = ""
        self._foot = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.links += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag == "section":
            self._section = (given["id"] or "").removeprefix("topic-")
        elif tag == "table":
            self._table = self.tables[self._section, given["class"] or ""] = Table()
        elif tag == "tr":
            self._cells = []
        elif tag == "tfoot":
            self._foot = True
        elif tag == "img":
            self.images.append(base64.b64decode((given["src"] or "").removeprefix("data:image/png;base64,")))
        if tag in ("td", "th", "dt", "dd", "li"):
            self._text = []

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        text = "".join(self._text)
        if tag in ("td", "th"):
            self._cells.append(text)
        elif tag == "tr" and not self._foot:
            if self._table.titles:
                self._table.rows.append(dict(zip(self._table.titles, self._cells, strict=True)))
            else:
                self._table.titles = self._cells
        elif tag == "tfoot":
            self._foot = False
        elif tag == "dt":
            self._fact = text
        elif tag == "dd":
            self.facts[self._section, self._fact] = text
        elif tag == "li":
            self.findings.append(text)


def size(record: ConsumerRecord) -> int:
    headers = sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def records(broker: BrokerProcess, topic: str) -> list[ConsumerRecord]:
    return list(topics.records(broker.bootstrap, topic))


def gaps(records: Sequence[ConsumerRecord], start: int, end: int) -> list[tuple[int, int]]:
    """First and last offset of each, of one partition."""
    offsets = [start - 1, *sorted(record.offset for record in records), end]
    return [(a + 1, b - 1) for a, b in itertools.pairwise(offsets) if b > a + 1]


def flight_records() -> list[Sent]:
    found = []
    for number, row in enumerate(nyc.every(STEP)):
        key = None if row["tailnum"] is None else row["tailnum"].encode()
        headers = (("event-id", str(number // SAME_EVENT).encode()),) if number % 2 else ()
        ms = int(datetime.fromisoformat(row["time_hour"]).timestamp() * 1000)
        found.append(Sent(number % 2, key, json.dumps(row).encode(), headers, ms))
    return found


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """One whose cleaner does not wait."""
    with BrokerProcess({"log.cleaner.backoff.ms": 50}) as process:
        yield process


@pytest.fixture(scope="module")
def flown(broker: BrokerProcess) -> str:
    """Flights of a year in two partitions, some of them twice, and a group that lags."""
    topic = TopicFactory(broker, "flown")(partitions=2, configs=FOREVER)
    sent = flight_records()
    again = [sent[number]._replace(partition=(number + (number % 5 == 0)) % 2) for number in REPEATED]
    send(broker.bootstrap, topic, [*sent, *again])
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": LAGGING, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(topic, 0, READ)], asynchronous=False)
    consumer.close()
    return topic


@pytest.fixture(scope="module")
def booked(broker: BrokerProcess) -> Iterator[str]:
    """Offsets 0 to 9 without a transaction, 10 to 109 committed, 111 to 150 aborted, 152 and 153 by two producers that
    commit one after the other, so that 154 and 155 have no record, and 156 to 162 in a transaction that stays open."""
    topic = TopicFactory(broker, "booked")(configs=FOREVER)
    sent = [each._replace(partition=0) for each in flight_records()]
    send(broker.bootstrap, topic, sent[:10])
    send_in_transaction(broker.bootstrap, topic, sent[10:110], commit=True)
    send_in_transaction(broker.bootstrap, topic, sent[110:150], commit=False)
    producers = []
    for number, own in enumerate((sent[150:151], sent[151:152], sent[152:159])):
        name = f"{topic}-{number}"
        # The last one stays open for as long as a busy machine needs.
        settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": name, "transaction.timeout.ms": 600_000}
        producer = Producer(settings)
        producer.init_transactions(30)
        producer.begin_transaction()
        producers.append(producer)
        if number == 2:
            for each in producers[:2]:
                each.commit_transaction(30)
        for each in own:
            producer.produce(topic, value=each.value, key=each.key, partition=0, timestamp=each.timestamp)
        assert producer.flush(30) == 0
    yield topic
    producers[2].abort_transaction(30)


@pytest.fixture(scope="module")
def compacted(broker: BrokerProcess) -> str:
    """The last flights of each carrier, after the cleaner."""
    configs = {"cleanup.policy": "compact", "segment.bytes": 1 << 20, "min.cleanable.dirty.ratio": 0.01}
    topic = TopicFactory(broker, "carriers")(configs=configs)
    sent = [
        each._replace(partition=0, key=json.loads(each.value or b"")["carrier"].encode()) for each in flight_records()
    ]
    send(broker.bootstrap, topic, sent)
    deadline = time.monotonic() + PATIENCE_S
    count = len(sent)
    while True:
        left = len(records(broker, topic))
        if left == count < len(sent):
            return topic
        count = left
        assert time.monotonic() < deadline, "nothing was compacted"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def audited(
    spark: SparkSession,
    broker: BrokerProcess,
    flown: str,
    booked: str,
    compacted: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Page, Path]:
    """One audit of all."""
    folder = tmp_path_factory.mktemp("audit") / "report"
    run(main, flown, booked, compacted, "--report", folder, "-b", broker.bootstrap)
    return Page((folder / "audit.html").read_text(encoding="utf-8")), folder


def test_counts_sizes_and_times_are_those_of_the_records(
    audited: tuple[Page, Path], broker: BrokerProcess, flown: str
) -> None:
    page, _ = audited
    shown = page.tables[flown, "records"]
    kept = records(broker, flown)
    for number, row in enumerate(shown.rows):
        own = [record for record in kept if record.partition == number]
        sizes = sorted(size(record) for record in own)
        times = [record.timestamp for record in own]
        expected = {
            "partition": number,
            "records": len(own),
            "bytes": sum(sizes),
            "largest": sizes[-1],
            "without key": sum(record.key is None for record in own),
            "without value": 0,
        }
        assert {name: int(row[name].replace(",", "")) for name in expected} == expected
        median, most = (int(row[name].replace(",", "")) for name in ("median", "99 %"))
        assert abs(sizes[len(sizes) // 2] - median) <= 1
        assert abs(sizes[len(sizes) * 99 // 100] - most) <= 2
        assert (row["first"], row["last"]) == (moment(min(times)), moment(max(times)))
        rate = len(own) / ((max(times) - min(times)) / 60_000)
        assert row["per minute"] == f"{rate:.3g}"
    offsets = page.tables[flown, "offsets"]
    assert offsets.numbers(
        "start", "end", "offsets", "records", "aborted", "open", "markers", "compaction", "unclear"
    ) == [(0, count, count, count, 0, 0, 0, 0, 0) for (count,) in shown.numbers("records")]
    assert (flown, "gaps") not in page.tables


def test_planted_duplicates_are_found_with_their_places(
    audited: tuple[Page, Path], broker: BrokerProcess, flown: str, booked: str
) -> None:
    page, _ = audited
    across = sum(number % 5 == 0 for number in REPEATED)
    assert page.facts[flown, "records beyond the first"] == str(len(REPEATED))
    assert page.facts[flown, "identities that repeat"] == str(len(REPEATED))
    assert page.facts[flown, "in several partitions"] == str(across)
    text = f"look{flown} has {len(REPEATED)} duplicates, of {len(REPEATED)} identities; {across} of them are in several"
    assert any(finding.startswith(text) for finding in page.findings)
    contents = {(record.partition, record.offset): (record.key, record.value) for record in records(broker, flown)}
    rows = page.tables[flown, "duplicates"].rows
    assert len(rows) == 10
    for row in rows:
        first, last = (
            tuple(map(int, row[name].replace(",", "").split("/"))) for name in ("first partition/offset", "last")
        )
        assert first != last
        assert contents[first] == contents[last]
        assert row["begins with"] == (contents[first][0] or b"").decode()
        assert row["times"] == "2"
    assert page.facts[booked, "records beyond the first"] == "0"


def test_offsets_of_transactions_are_told_apart(audited: tuple[Page, Path], booked: str) -> None:
    page, _ = audited
    names = ("start", "end", "offsets", "records", "aborted", "open", "markers", "compaction", "unclear")
    assert page.tables[booked, "offsets"].numbers(*names) == [(0, 163, 163, 112, 40, 7, 2, 0, 2)]
    assert page.tables[booked, "gaps"].numbers("first offset", "last offset", "length") == [
        (154, 155, 2),
        (110, 110, 1),
        (151, 151, 1),
    ]
    for text in (
        f"lookA transaction is open in {booked}/0: readers of committed records wait at offset 156.",
        f"note{booked}/0 holds 40 records of transactions that were aborted.",
        f"note{booked}/0 has 2 gaps of one offset, as the ends of transactions leave them.",
    ):
        assert text in page.findings
    assert any(
        finding.startswith(f"look{booked}/0 lacks 2 offsets in gaps of two and more") for finding in page.findings
    )


def test_gaps_of_a_compacted_topic_are_those_of_its_records(
    audited: tuple[Page, Path], broker: BrokerProcess, compacted: str
) -> None:
    page, _ = audited
    kept = records(broker, compacted)
    (row,) = page.tables[compacted, "offsets"].numbers("start", "end", "records", "markers", "compaction", "unclear")
    start, end = row[:2]
    found = gaps(kept, start, end)
    lacking = sum(last - first + 1 for first, last in found)
    assert lacking > 1000
    assert row == (0, len(flight_records()), len(kept), 0, lacking, 0)
    longest = sorted(found, key=lambda gap: (gap[0] - gap[1], gap[0]))[:5]
    assert page.tables[compacted, "gaps"].numbers("first offset", "last offset") == longest
    assert page.facts[compacted, "cleanup.policy"] == "compact"


def test_the_lag_of_a_group_is_counted_in_offsets_and_in_records(
    audited: tuple[Page, Path], broker: BrokerProcess, flown: str
) -> None:
    page, _ = audited
    left = [record for record in records(broker, flown) if record.partition == 0 and record.offset >= READ]
    read, unread = page.tables["groups", "groups"].rows
    oldest = moment(min(record.timestamp for record in left))
    count = f"{len(left):,}"
    assert read == {
        "group": LAGGING,
        "state": "Empty",
        "topic": flown,
        "partition": "0",
        "members": "0",
        "committed": f"{READ:,}",
        "end": f"{READ + len(left):,}",
        "lag": count,
        "records to read": count,
        "oldest": oldest,
    }
    assert [unread[name] for name in ("partition", "committed", "lag", "records to read")] == ["1", "–", "–", "–"]
    assert f"lookGroup {LAGGING} has {count} records left to read, the oldest of {oldest}." in page.findings
    assert f"noteGroup {LAGGING} has committed nothing for {flown}/1." in page.findings


def test_the_page_needs_nothing_beside_it_and_its_pictures_are_the_files(
    audited: tuple[Page, Path], flown: str, booked: str, compacted: str
) -> None:
    page, folder = audited
    assert all(link.startswith("data:image/png;base64,") for link in page.links)
    text = (folder / "audit.html").read_text(encoding="utf-8")
    assert "http" not in text
    assert "<script" not in text
    names = [f"topic-{name}.png" for name in sorted((flown, booked, compacted))] + ["lag.png"]
    assert page.images == [(folder / name).read_bytes() for name in names]
    for image in page.images:
        assert struct.unpack(">II", image[16:24]) > (1600, 200)
        # Something is drawn: more than paper and ink.
        pixels = imread(io.BytesIO(image))[::7, ::7, :3].reshape(-1, 3)
        assert len({tuple(pixel) for pixel in pixels.tolist()}) > 4


def test_an_identity_is_what_sql_says_and_a_group_may_be_chosen(
    spark: SparkSession, broker: BrokerProcess, flown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    identity = "string(try_element_at(filter(headers, h -> h.key = 'event-id'), 1).value)"
    run(main, flown, "--report", tmp_path, "--id", identity, "--group", LAGGING, "-b", broker.bootstrap)
    kept = records(broker, flown)
    ids = Counter(dict(record.headers).get("event-id") for record in kept)
    unknown = ids.pop(None)
    page = Page((tmp_path / "audit.html").read_text(encoding="utf-8"))
    assert page.facts[flown, "identities that repeat"] == f"{sum(count > 1 for count in ids.values()):,}"
    assert page.facts[flown, "records beyond the first"] == f"{sum(count - 1 for count in ids.values()):,}"
    assert page.facts[flown, "without identity"] == f"{unknown:,}"
    assert page.tables[flown, "duplicates"].rows[0]["times"] == str(max(ids.values()))
    assert {row["group"] for row in page.tables["groups", "groups"].rows} == {LAGGING}
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == f"{len(kept):,} records counted: {tmp_path / 'audit.html'}"
    assert [line.replace(": ", "", 1) for line in told[:-1]] == page.findings


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--id", "nothing_like_it"], "nothing_like_it"),
        (["--group", "nobody"], "group nobody has committed nothing for "),
    ],
)
def test_what_is_asked_wrongly_ends_the_job_in_one_line(
    options: list[str],
    line: str,
    spark: SparkSession,
    broker: BrokerProcess,
    flown: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(main, flown, "--report", tmp_path, *options, "-b", broker.bootstrap)
    assert ended.value.code == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert line in told


def test_it_runs_by_spark_submit(broker: BrokerProcess, booked: str, tmp_path: Path) -> None:
    arguments: list[Any] = [booked, "--report", tmp_path / "report", "-b", broker.bootstrap]
    with JobProcess("audit", *arguments, folder=tmp_path, submit=True) as job:
        assert "159 records counted" in job.finish()
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == ["audit.html", f"topic-{booked}.png"]
