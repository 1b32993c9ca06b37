"""Creating and deleting topics, adding partitions: what a request asks for turned into changes of the metadata.

Pure: an image and a request go in, a result for each topic comes out, with the change for `MetadataStore.commit` or the
error for the response. Validation, its order and its messages are those of Apache Kafka 4.3.1's controller. A caller
that only validates drops the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kwire.cluster.assignment import check_manual_assignment, place
from kwire.metadata.changes import PartitionsAdded, TopicCreated, TopicDeleted
from kwire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kwire.metadata.names import REMOTE_LOG_METADATA, by_metric_name, check_collision, check_name
from kwire.ports.randomness import Randomness
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
MAX_PARTITIONS_PER_REQUEST = 10_000

_NO_SUCH_TOPIC = "This server does not host this topic-partition."
_NO_SUCH_ID = "This server does not host this topic ID."

PartitionAssignment = tuple[int, Sequence[int]]
"""(partition number, its replicas by hand, the preferred leader first)."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create, as the request has it; -1 means the broker's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[PartitionAssignment] = ()
    configs: Sequence[tuple[str, str | None]] = ()


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """Partitions to add: `count` is the topic's new total; `assignments` by hand has one entry for each added one."""

    topic: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What a request does to one topic: a change, or an error. `topic_id` is zero where unknown."""

    name: str | None
    topic_id: bytes = uuids.ZERO
    change: TopicCreated | TopicDeleted | PartitionsAdded | None = None
    error: KafkaError | None = None


@dataclass(frozen=True, slots=True)
class Creation:
    """What creating topics needs from outside the image."""

    default_partitions: int
    """`num.partitions`."""
    default_replication_factor: int
    """`default.replication.factor`."""
    check_configs: Callable[[Mapping[str, str]], None]
    """Raises KafkaError INVALID_CONFIG for a topic config that does not exist or has a wrong value."""
    randomness: Randomness


def create_topics(image: MetadataImage, topics: Sequence[NewTopic], creation: Creation) -> list[Result]:
    """A result for each topic, those asked for twice once, at the end."""
    _limit_partitions(
        sum(len(topic.assignments) or max(topic.partitions, 0) or creation.default_partitions for topic in topics)
    )
    once, twice = _split_duplicates(topic.name for topic in topics)
    present = by_metric_name(image.topics)
    results = []
    for topic in topics:
        if topic.name in once:
            try:
                results.append(_create(image, topic, creation, present))
            except KafkaError as error:
                results.append(Result(topic.name, error=error))
    results.extend(Result(name, error=_invalid_request("Duplicate topic name.")) for name in twice)
    return results


def _create(image: MetadataImage, topic: NewTopic, creation: Creation, present: Mapping[str, str]) -> Result:
    """`present`: the topics there are, `by_metric_name`."""
    if topic.name == CLUSTER_METADATA_TOPIC:
        raise _invalid_request(f"Creation of internal topic {topic.name} is prohibited.")
    check_name(topic.name)
    if topic.name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    check_collision(topic.name, present)
    nulls = [key for key, value in topic.configs if value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    configs = {key: value for key, value in topic.configs if value is not None}
    creation.check_configs(configs)
    partitions = _by_hand(image, topic) if topic.assignments else _placed(image, topic, creation)
    topic_id = creation.randomness.uuid()
    return Result(topic.name, topic_id, TopicCreated(TopicImage(topic.name, topic_id, partitions), configs))


def _by_hand(image: MetadataImage, topic: NewTopic) -> tuple[PartitionImage, ...]:
    if topic.replication_factor != -1:
        raise _invalid_request("A manual partition assignment was specified, but replication factor was not set to -1.")
    if topic.partitions != -1:
        raise _invalid_request("A manual partition assignment was specified, but numPartitions was not set to -1.")
    partitions: dict[int, PartitionImage] = {}
    replication_factor = None
    for index, replicas in topic.assignments:
        if index in partitions:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        check_manual_assignment(image.brokers, replicas, replication_factor)
        replication_factor = len(replicas)
        partitions[index] = _new_by_hand(image, index, replicas)
    if sorted(partitions) != list(range(len(partitions))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return tuple(partitions[index] for index in range(len(partitions)))


def _placed(image: MetadataImage, topic: NewTopic, creation: Creation) -> tuple[PartitionImage, ...]:
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.partitions < -1 or topic.partitions == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    count = creation.default_partitions if topic.partitions == -1 else topic.partitions
    factor = creation.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
    try:
        placed = place(image.brokers.values(), count, factor, creation.randomness)
    except KafkaError as error:
        raise KafkaError(error.code, f"Unable to replicate the partition {factor} time(s): {error.message}") from None
    return _new_each(image, placed)


def _new_each(image: MetadataImage, placed: Iterable[Sequence[int]]) -> tuple[PartitionImage, ...]:
    """A partition for each list of replicas; those with the same replicas share one object."""
    made: dict[tuple[int, ...], PartitionImage] = {}
    return tuple(
        made.get(replicas) or made.setdefault(replicas, _new(image, replicas)) for replicas in map(tuple, placed)
    )


def _new(image: MetadataImage, replicas: Sequence[int]) -> PartitionImage:
    """A partition that begins: every live replica is in sync (there is nothing yet), the first one leads."""
    isr = tuple(broker for broker in replicas if not image.brokers[broker].fenced)
    return PartitionImage(tuple(replicas), isr, isr[0], 0, 0)


def _new_by_hand(image: MetadataImage, index: int, replicas: Sequence[int]) -> PartitionImage:
    if all(image.brokers[broker].fenced for broker in replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown.",
        )
    return _new(image, replicas)


def create_partitions(image: MetadataImage, requests: Sequence[NewPartitions], randomness: Randomness) -> list[Result]:
    """A result for each topic, those asked for twice once, at the beginning."""
    once, twice = _split_duplicates(request.topic for request in requests)
    results = [Result(name, error=_invalid_request("Duplicate topic name.")) for name in twice]
    for request in requests:
        if request.topic in once:
            try:
                results.append(_add_partitions(image, request, randomness))
            except KafkaError as error:
                results.append(Result(request.topic, error=error))
    return results


def _add_partitions(image: MetadataImage, request: NewPartitions, randomness: Randomness) -> Result:
    topic = image.topics.get(request.topic)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if topic.name == REMOTE_LOG_METADATA:
        raise _invalid_request(
            f"What is in remote storage is looked up by the number of partitions of {topic.name}, which can't change."
        )
    if request.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if request.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {request.count} would not be an increase.",
        )
    added = request.count - present
    factor = len(topic.partitions[0].replicas)
    if request.assignments is None:
        _limit_partitions(added)
        partitions = _new_each(image, place(image.brokers.values(), added, factor, randomness))
        return Result(topic.name, topic.id, PartitionsAdded(topic.name, partitions))
    if len(request.assignments) != added:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added} additional partition(s), but only {len(request.assignments)} "
            "assignment(s) were specified.",
        )
    by_hand = []
    for index, replicas in enumerate(request.assignments, present):
        check_manual_assignment(image.brokers, replicas, factor)
        by_hand.append(_new_by_hand(image, index, replicas))
    return Result(topic.name, topic.id, PartitionsAdded(topic.name, tuple(by_hand)))


def delete_topics(image: MetadataImage, topics: Sequence[tuple[str | None, bytes]]) -> list[Result]:
    """A result for each topic, asked for by name (the id zero) or by id (the name None)."""
    results: list[Result] = []
    names: list[str] = []
    ids: list[bytes] = []
    for name, topic_id in topics:
        if name is None and topic_id == uuids.ZERO:
            results.append(Result(None, error=_invalid_request("Neither topic name nor id were specified.")))
        elif name is None:
            ids.append(topic_id)
        elif topic_id == uuids.ZERO:
            names.append(name)
        else:
            error = _invalid_request("You may not specify both topic name and topic id.")
            results.append(Result(name, topic_id, error=error))
    once, twice = _split_duplicates(names)
    results.extend(Result(name, error=_invalid_request("Duplicate topic name.")) for name in twice)
    once_ids, twice_ids = _split_duplicates(ids)
    results.extend(Result(None, topic_id, error=_invalid_request("Duplicate topic id.")) for topic_id in twice_ids)
    deleted: dict[bytes, Result] = {}
    for topic_id in once_ids:
        topic = image.topic_by_id(topic_id)
        if topic is None:
            results.append(Result(None, topic_id, error=KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, _NO_SUCH_ID)))
        else:
            deleted[topic_id] = Result(topic.name, topic_id, TopicDeleted(topic.name))
    for name in once:
        topic = image.topics.get(name)
        if topic is None:
            results.append(Result(name, error=KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NO_SUCH_TOPIC)))
        elif topic.id in deleted or topic.id in twice_ids:
            deleted.pop(topic.id, None)
            error = _invalid_request("The provided topic name maps to an ID that was already supplied.")
            results.append(Result(name, topic.id, error=error))
        else:
            deleted[topic.id] = Result(name, topic.id, TopicDeleted(name))
    return results + list(deleted.values())


def _split_duplicates(items: Iterable) -> tuple[dict, dict]:
    """(what occurs once, what occurs more often), each in order of first occurrence."""
    once: dict = {}
    twice: dict = {}
    for item in items:
        if item in twice:
            continue
        if item in once:
            del once[item]
            twice[item] = None
        else:
            once[item] = None
    return once, twice


def _limit_partitions(count: int) -> None:
    if count > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _invalid_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
