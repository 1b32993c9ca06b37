"""An audit as one page of HTML that needs nothing beside it: no script, no network, its pictures within."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from spark_jobs.auditing.numbers import Audit, Finding, Lag, PartitionCounts, Repeated, TopicCounts, moment
from spark_jobs.auditing.plots import COLOURS
from spark_jobs.pages import document, image, table

NONE = "–"
KINDS = {
    "records": "Records that every reader gets.",
    "aborted": "Records of transactions that were aborted; readers of committed records pass them over.",
    "open": "Records of transactions that have not ended, or behind one: readers of committed records wait there.",
    "markers": "Gaps of one offset in a topic that is not compacted: the end of a transaction takes an offset. "
    "A single record that was lost would look the same.",
    "compaction": "Gaps in a compacted topic. Ends of transactions leave some too, and nobody can tell which.",
    "unclear": "Gaps of two offsets and more in a topic that is not compacted: transactions that ended one after the "
    "other, compaction under an earlier policy, or a loss.",
}
STYLE = """
.facts { display: flex; flex-wrap: wrap; gap: 12px 40px; margin: 0; }
.facts div { min-width: 90px; }
.facts dt { color: var(--pale); font-size: 12.5px; }
.facts dd { margin: 0; font-size: 22px; font-weight: 600; font-variant-numeric: tabular-nums; }
td.wide { white-space: normal; overflow-wrap: anywhere; }
ul.findings { list-style: none; margin: 0; padding: 0; }
ul.findings li { display: flex; gap: 12px; padding: 4px 0; align-items: baseline; }
.weight { flex: none; width: 52px; text-align: center; border-radius: 5px; font-size: 12px; padding: 1px 0; }
.wrong { background: #fbdcdc; color: #8f1d1d; } .look { background: #fdf0cd; color: #755104; }
.note { background: #e8edf2; color: #4a5865; } .well { background: #d9f0e1; color: #1c6338; }
dl.kinds { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 0; font-size: 13.5px; }
dl.kinds dt::before { content: ""; display: inline-block; width: 10px; height: 10px; border-radius: 2px;
  margin-right: 8px; background: var(--colour); }
dl.kinds dd { margin: 0; color: var(--pale); }
"""


def page(audit: Audit, pictures: Mapping[str, bytes], lags: bytes | None) -> str:
    """`pictures` are PNG files, by topic; `lags` is the one of all groups."""
    names = ", ".join(topic.name for topic in audit.topics)
    made = audit.made_at.strftime("%Y-%m-%d %H:%M:%S")
    parts = [
        f"<h1>Audit of {escape(names)}</h1>",
        f'<p class="about">{escape(audit.bootstrap_servers)} · {made} · all times in UTC</p>',
        _findings(audit.findings()),
        *(_topic(topic, audit.identity, pictures[topic.name]) for topic in audit.topics),
        _groups(audit.lags, lags),
        _kinds(),
    ]
    return document(f"Audit of {names}", "\n".join(part for part in parts if part), STYLE)


def _findings(found: Sequence[Finding]) -> str:
    told = found or [Finding("well", "Nothing deserves a look.")]
    rows = (f'<li><span class="weight {each.weight}">{each.weight}</span>{escape(each.text)}</li>' for each in told)
    return f'<div class="card"><ul class="findings">{"".join(rows)}</ul></div>'


def _topic(topic: TopicCounts, identity: str, picture: bytes) -> str:
    facts = {
        "records": f"{topic.records:,}",
        "bytes": _bytes(sum(part.bytes for part in topic.partitions)),
        "partitions": f"{len(topic.partitions):,}",
        "duplicates": f"{topic.duplicates.surplus:,}",
        "cleanup.policy": topic.policy,
    }
    name = escape(topic.name)
    return (
        f'<section id="topic-{name}"><h2>{name}</h2>'
        + f'<div class="card">{_facts(facts)}</div>'
        + f'<div class="card">{image(picture, f"Records per minute, offsets and sizes of {topic.name}")}</div>'
        + f'<div class="card"><h3>Offsets</h3>{_offsets(topic)}</div>'
        + f'<div class="card"><h3>Records</h3>{_records(topic)}</div>'
        + _gaps(topic)
        + f'<div class="card"><h3>Duplicates</h3>{_duplicates(topic, identity)}</div></section>'
    )


def _offsets(topic: TopicCounts) -> str:
    rows = []
    for part in topic.partitions:
        bounds = part.bounds
        rows.append([bounds.partition, bounds.start, bounds.end, part.offsets, *topic.explained(part).values()])
    total = ["all", "", "", *(sum(row[column] for row in rows) for column in range(3, 4 + len(KINDS)))]
    return table("offsets", ["partition", "start", "end", "offsets", *KINDS], rows, total)


def _records(topic: TopicCounts) -> str:
    titles = ["partition", "records", "bytes", "median", "99 %", "largest", "without key", "without value"]
    titles += ["first", "last", "per minute"]
    rows = [[part.bounds.partition, *_of_records(part)] for part in topic.partitions]
    total = ["all", topic.records, sum(part.bytes for part in topic.partitions)]
    return table("records", titles, rows, [*total, *[""] * (len(titles) - len(total))])


def _of_records(part: PartitionCounts) -> list[object]:
    times = [moment(time) if time is not None else NONE for time in (part.first_time, part.last_time)]
    rate = part.per_minute
    counts = [part.records, part.bytes, part.median, part.p99, part.largest, part.null_keys, part.null_values]
    return [*counts, *times, NONE if rate is None else f"{rate:,.1f}" if rate >= 10 else f"{rate:.3g}"]


def _gaps(topic: TopicCounts) -> str:
    rows = [
        [part.bounds.partition, gap.first, gap.last, gap.length]
        for part in topic.partitions
        for gap in part.gaps.longest
    ]
    if not rows:
        return ""
    longest = table("gaps", ["partition", "first offset", "last offset", "length"], rows)
    return f'<div class="card"><h3>The longest gaps of each partition</h3>{longest}</div>'


def _duplicates(topic: TopicCounts, identity: str) -> str:
    found = topic.duplicates
    facts = {
        "identities that repeat": f"{found.ids:,}",
        "records beyond the first": f"{found.surplus:,}",
        "in several partitions": f"{found.across:,}",
        "without identity": f"{found.unknown:,}",
    }
    text = f'{_facts(facts)}<p class="about">Duplicates share {escape(identity)}.</p>'
    rows = [[_quoted(each), each.times, _place(each.first), _place(each.last)] for each in found.most]
    titles = ["begins with" if rows else "", "times", "first partition/offset", "last"]
    return text + (table("duplicates", titles, rows, text_columns=1) if rows else "")


def _quoted(each: Repeated) -> str:
    """Keys may hold anything: what is no letter is shown as its code."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in each.text)


def _place(place: tuple[int, int]) -> str:
    return f"{place[0]}/{place[1]:,}"


def _groups(lags: Sequence[Lag], picture: bytes | None) -> str:
    if not lags:
        return '<section id="groups"><h2>Consumer groups</h2><p class="about">None has read these topics.</p></section>'
    titles = ["group", "state", "topic", "partition", "members", "committed", "end", "lag", "records to read", "oldest"]
    rows = []
    for lag in lags:
        told = [lag.commit.offset, lag.bounds.end, lag.offsets, lag.unread]
        row: list[object] = [lag.commit.group, lag.commit.state, lag.commit.topic, lag.commit.partition]
        row += [lag.commit.members, *(NONE if number is None else number for number in told)]
        rows.append([*row, NONE if lag.oldest is None else moment(lag.oldest)])
    shown = f'<div class="card">{image(picture, "Lag of consumer groups")}</div>' if picture else ""
    lagging = table("groups", titles, rows, text_columns=3)
    return f'<section id="groups"><h2>Consumer groups</h2>{shown}<div class="card">{lagging}</div></section>'


def _kinds() -> str:
    rows = (f'<dt style="--colour: {COLOURS[kind]}">{kind}</dt><dd>{escape(text)}</dd>' for kind, text in KINDS.items())
    sizes = "Sizes are those of key, value and headers in bytes, without compression and without what a log adds."
    return (
        f'<h2>What the words mean</h2><div class="card"><dl class="kinds">{"".join(rows)}</dl>'
        f'<p class="about">Lag is counted in offsets, as Kafka’s tools do; records to read are those that a reader of '
        f"committed records would still get. {sizes}</p></div>"
    )


def _facts(facts: Mapping[str, str]) -> str:
    rows = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="facts">{"".join(rows)}</dl>'


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"
