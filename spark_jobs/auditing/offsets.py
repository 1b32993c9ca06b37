"""What the brokers say of partitions and of consumer groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_jobs.faults import Fault
from spark_jobs.topics import Admin


@dataclass(frozen=True)
class Bounds:
    """Offsets of a partition, at one moment."""

    topic: str
    partition: int
    start: int
    """Of the first record that is left."""
    stable: int
    """Below it every transaction has ended: readers of committed records come so far."""
    end: int
    """Of the next record."""


@dataclass(frozen=True)
class Commit:
    """How far a group has read a partition, as it said itself."""

    group: str
    state: str
    members: int
    topic: str
    partition: int
    offset: int | None
    """None where it committed none, though it did for others of the topic."""


def bounds(admin: Admin, partitions: Mapping[str, int]) -> list[Bounds]:
    """Of every partition of these topics; start <= stable <= end, though time passes between the questions."""
    places = [(topic, number) for topic, count in sorted(partitions.items()) for number in range(count)]
    levels = admin.jvm.org.apache.kafka.common.IsolationLevel
    ends = _listed(admin, places, "latest", levels.READ_UNCOMMITTED)
    stables = _listed(admin, places, "latest", levels.READ_COMMITTED)
    starts = _listed(admin, places, "earliest", levels.READ_UNCOMMITTED)
    found = []
    for place in places:
        start = min(starts[place], ends[place])
        found.append(Bounds(*place, start, max(start, min(stables[place], ends[place])), ends[place]))
    return found


def _listed(admin: Admin, places: Sequence[tuple[str, int]], spec: str, level: Any) -> dict[tuple[str, int], int]:
    java = admin.jvm.org.apache.kafka
    questions = admin.jvm.java.util.HashMap()
    for topic, partition in places:
        position = getattr(java.clients.admin.OffsetSpec, spec)()
        questions.put(java.common.TopicPartition(topic, partition), position)
    options = java.clients.admin.ListOffsetsOptions(level)
    answers = admin.asked(lambda: admin.client.listOffsets(questions, options).all().get())
    return {(key.topic(), key.partition()): answers[key].offset() for key in answers}


def policies(admin: Admin, topics: Sequence[str]) -> dict[str, str]:
    """The cleanup.policy of each topic."""
    kinds = admin.jvm.org.apache.kafka.common.config.ConfigResource
    questions = [kinds(kinds.Type.TOPIC, topic) for topic in topics]
    answers = admin.asked(lambda: admin.client.describeConfigs(questions).all().get())
    return {key.name(): answers[key].get("cleanup.policy").value() for key in answers}


def commits(admin: Admin, partitions: Mapping[str, int], wanted: Sequence[str]) -> list[Commit]:
    """Of these groups, or of all that have read one of the topics. Raises Fault where a wanted one has not."""
    names = list(wanted)
    if not names:
        listed = admin.asked(lambda: admin.client.listConsumerGroups().all().get())
        names = sorted(each.groupId() for each in listed)
    if not names:
        return []
    spec = admin.jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec
    questions = admin.jvm.java.util.HashMap()
    for name in names:
        questions.put(name, spec())
    answers = admin.asked(lambda: admin.client.listConsumerGroupOffsets(questions).all().get())
    read = {}
    for name in names:
        known = {(key.topic(), key.partition()): answers[name][key] for key in answers[name]}
        offsets = {place: said.offset() for place, said in known.items() if place[0] in partitions and said is not None}
        if offsets:
            read[name] = offsets
    missing = sorted(set(wanted) - read.keys())
    if missing:
        raise Fault(f"group {', '.join(missing)} has committed nothing for {', '.join(sorted(partitions))}")
    if not read:
        return []
    told = admin.asked(lambda: admin.client.describeConsumerGroups(list(read)).all().get())
    return [
        Commit(name, str(told[name].state()), told[name].members().size(), topic, number, offsets.get((topic, number)))
        for name, offsets in sorted(read.items())
        for topic in sorted({topic for topic, _ in offsets})
        for number in range(partitions[topic])
    ]
