"""What comes over and where to, decided before anything is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.folder import carried_files, old_format
from kwire.cluster.adoption.marks import Mode
from kwire.cluster.adoption.metadata import translate
from kwire.cluster.adoption.moved import moved_from
from kwire.cluster.adoption.source import SourceDir
from kwire.cluster.adoption.state import KraftPartition, KraftState, KraftTopic
from kwire.cluster.adoption.targets import Before
from kwire.metadata.image import MetadataImage
from kwire.ports.copying import nearest_folder, same_volume
from kwire.ports.files import FileSystem
from kwire.protocol import uuids
from kwire.storage import layout
from kwire.storage.checkpoints import TopicPartition

_UNASSIGNED = (bytes(16), bytes(15) + b"\1")
"""Directory ids of replicas whose log dir the controller has not heard of yet."""
_SHOWN = 5


class Carry(NamedTuple):
    """One partition: where from, and the number of the target dir."""

    key: TopicPartition
    source: SourceDir
    target: int
    bytes: int


class TopicSize(NamedTuple):
    name: str
    partitions: int
    bytes: int


@dataclass(slots=True)
class Plan:
    """Everything that is to be done, and what is to be told of it."""

    sources: list[SourceDir]
    targets: list[str]
    mode: Mode
    image: MetadataImage
    carries: list[Carry]
    before: Before
    topics: list[TopicSize]
    empty: list[str] = field(default_factory=list)
    """Partitions without a folder: nothing was ever written to them, and kwire makes them."""
    left_out: list[str] = field(default_factory=list)
    """A line for each thing that does not come over, or not whole."""

    @property
    def node_id(self) -> int:
        return self.sources[0].node_id

    @property
    def clean(self) -> bool:
        """Whether the broker stopped cleanly, so that nothing has to be recovered."""
        return all(source.clean for source in self.sources)

    @property
    def bytes(self) -> int:
        return sum(carry.bytes for carry in self.carries)


def check_sources(sources: Sequence[SourceDir]) -> None:
    """Raises AdoptionError unless these are log dirs of one broker, with one folder a partition."""
    first = sources[0]
    for source in sources[1:]:
        if (source.cluster_id, source.node_id) != (first.cluster_id, first.node_id):
            raise AdoptionError(
                f"{first.path} is of node {first.node_id} in cluster {first.cluster_id}, "
                f"{source.path} of node {source.node_id} in cluster {source.cluster_id}: import one broker at a time"
            )
    for one, other in combinations(sources, 2):
        if one.path == other.path or one.id == other.id != uuids.ZERO:
            raise AdoptionError(f"{one.path} and {other.path} are the same dir, or one is a copy of the other")
    seen: dict[TopicPartition, SourceDir] = {}
    for source in sources:
        for key in source.partitions:
            if key in seen:
                raise AdoptionError(
                    f"{key[0]}-{key[1]} is in {seen[key].path} and in {source.path}: remove one of them"
                )
            seen[key] = source


def make_plan(
    files: FileSystem,
    sources: list[SourceDir],
    state: KraftState,
    targets: list[str],
    mode: Mode,
    before: Before,
    *,
    skip_incomplete: bool,
) -> Plan:
    """Raises AdoptionError where a topic is not wholly here, unless `skip_incomplete` leaves such out; OSError."""
    chooser = _Chooser(files, sources, state, before)
    incomplete = chooser.choose()
    if incomplete and not skip_incomplete:
        more = f" and {len(incomplete) - _SHOWN} more" if len(incomplete) > _SHOWN else ""
        raise AdoptionError(
            f"{len(incomplete)} topics are not here, or not wholly: {'; '.join(incomplete[:_SHOWN])}{more} "
            "(--skip-incomplete leaves them out)"
        )
    translated = translate(state, chooser.topics, sources[0].cluster_id, sources[0].node_id)
    carries = _place(files, chooser.found, sources, targets, mode)
    sizes: dict[str, int] = {}
    for carry in carries:
        sizes[carry.key[0]] = sizes.get(carry.key[0], 0) + carry.bytes
    others = sorted(state.brokers.keys() - {sources[0].node_id})
    left_out = [f"the data of broker {broker} of the cluster" for broker in others]
    left_out += [f"topic {line}" for line in incomplete] + chooser.behind + chooser.strays() + translated.left_out
    topics = sorted(chooser.topics, key=lambda topic: topic.name)
    return Plan(
        sources,
        targets,
        mode,
        translated.image,
        carries,
        before,
        [TopicSize(topic.name, len(topic.partitions), sizes.get(topic.name, 0)) for topic in topics],
        chooser.empty,
        left_out,
    )


class _Chooser:
    """Goes through the topics for those whose partitions are all here."""

    def __init__(self, files: FileSystem, sources: Sequence[SourceDir], state: KraftState, before: Before) -> None:
        self.topics: list[KraftTopic] = []
        self.found: dict[TopicPartition, SourceDir] = {}
        self.empty: list[str] = []
        self.behind: list[str] = []
        self._files = files
        self._sources = sources
        self._state = state
        self._before = before
        self._moved = moved_from(files, sources)
        self._node_id = sources[0].node_id
        self._dirs = {source.id for source in sources}

    def choose(self) -> list[str]:
        """Fills the attributes; returns a line for each topic that is not wholly here."""
        incomplete = []
        for topic in sorted(self._state.topics.values(), key=lambda topic: topic.name):
            reason = self._missing(topic)
            if reason is not None:
                incomplete.append(f"{topic.name} ({reason})")
                continue
            self.topics.append(topic)
            for number, partition in sorted(topic.partitions.items()):
                self._take(topic, number, partition)
        return incomplete

    def strays(self) -> list[str]:
        """Lines about folders that belong to no partition that comes over."""
        lines = []
        for source in self._sources:
            lines += [f"{source.path}/{name}: the folder of no live partition" for name in source.others]
            for key in source.partitions.keys() - self.found.keys():
                if key[0] not in {topic.name for topic in self._state.topics.values()}:
                    lines.append(f"{source.folder(key)}: the cluster has no such topic any more")
        return sorted(lines)

    def _missing(self, topic: KraftTopic) -> str | None:
        numbers = sorted(topic.partitions)
        if numbers != list(range(len(numbers))) or not numbers:
            return "its partitions are not numbered as they should be"
        for number, partition in sorted(topic.partitions.items()):
            source, key = self._source_of(topic, number), (topic.name, number)
            if source is not None:
                version = old_format(self._files, source, key)
                if version is not None:
                    return f"partition {number} has records of message format v{version}, which kwire does not read"
            if source is not None or key in self._before.moved:
                continue
            self._refuse_moved(key)
            if self._node_id not in partition.replicas:
                return f"partition {number} is on brokers {', '.join(map(str, partition.replicas))}"
            if not self._may_be_empty(partition):
                return f"partition {number} is in a log dir that is not given"
            checkpoint = self._checkpoint_of(key)
            if checkpoint is not None:
                return f"partition {number} was written to, as {checkpoint} says, and its folder is not there"
        return None

    def _refuse_moved(self, key: TopicPartition) -> None:
        """Raises AdoptionError where an import has moved the partition away, and it is not found where it went."""
        name = layout.partition_dir_name(*key)
        if key in self._before.moving:
            target = self._before.moving[key]
            raise AdoptionError(
                f"{name} was being moved to {target}, and is not there any more: is the volume mounted?"
            )
        if key in self._moved:
            target, said_by = self._moved[key]
            raise AdoptionError(
                f"an import has moved {name} to {target}, as {said_by} says: if it was interrupted, run just that one "
                f"again (is the volume mounted?), else serve what is there"
            )

    def _checkpoint_of(self, key: TopicPartition) -> str | None:
        """The path of a checkpoint by which there were records, of a dir that has no folder of that name."""
        for source in self._sources:
            for checkpoint in layout.OFFSET_CHECKPOINTS:
                if key not in source.partitions and (source.offset(checkpoint, key) or 0) > 0:
                    return f"{source.path}/{checkpoint}"
        return None

    def _may_be_empty(self, partition: KraftPartition) -> bool:
        """Whether the replica's folder is missing because nothing was ever written to it."""
        if not partition.directories:
            return set(self._state.brokers.get(self._node_id, ())) <= self._dirs
        directory = partition.directories[partition.replicas.index(self._node_id)]
        return directory in self._dirs or directory in _UNASSIGNED

    def _source_of(self, topic: KraftTopic, number: int) -> SourceDir | None:
        for source in self._sources:
            if source.partitions.get((topic.name, number), b"") in (None, topic.id):
                return source
        return None

    def _take(self, topic: KraftTopic, number: int, partition: KraftPartition) -> None:
        key, source = (topic.name, number), self._source_of(topic, number)
        if source is not None:
            self.found[key] = source
        elif key not in self._before.moved:
            self.empty.append(f"{topic.name}-{number}")
        if len(partition.replicas) > 1 and self._node_id not in {*partition.isr, *partition.eligible}:
            self.behind.append(
                f"{topic.name}-{number}: this broker's replica was not in sync: the last records may be missing"
            )


def _place(
    files: FileSystem,
    found: Mapping[TopicPartition, SourceDir],
    sources: Sequence[SourceDir],
    targets: Sequence[str],
    mode: Mode,
) -> list[Carry]:
    """Each dir to its counterpart where there are as many targets, else the largest first to the emptiest."""
    sizes = {key: sum(file.size for file in carried_files(files, source, key)) for key, source in found.items()}
    filled = [0] * len(targets)
    carries = []
    for key, source in sorted(found.items(), key=lambda item: (-sizes[item[0]], item[0])):
        fitting = list(range(len(targets)))
        if mode is not Mode.COPY:
            fitting = [number for number in fitting if same_volume(source.path, nearest_folder(targets[number]))]
            if not fitting:
                raise AdoptionError(
                    f"--{mode.value} needs a data dir on the volume of {source.path}: without it the data are copied"
                )
        counterpart = sources.index(source)
        if len(targets) == len(sources) and counterpart in fitting:
            target = counterpart
        else:
            target = min(fitting, key=lambda number: filled[number])
        filled[target] += sizes[key]
        carries.append(Carry(key, source, target, sizes[key]))
    return sorted(carries, key=lambda carry: carry.key)
