"""After a restart: leader epochs that are over, and what the settings of this second start forbid.

The last module by name, since the settings stay.
"""

from __future__ import annotations

import pytest

from compat_tests.oracle.asking import batch, delete_records, epoch_ends, fetch, fill, list_offsets
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

pytestmark = pytest.mark.xdist_group("oracle")

SETTINGS = {"auto.create.topics.enable": "false", "delete.topic.enable": "false"}
PREFIX = "restarted"
TOPIC, EMPTY, DELETED = f"{PREFIX}-topic", f"{PREFIX}-empty", f"{PREFIX}-deleted"
EARLIEST, LATEST = -2, -1


@pytest.fixture(scope="module")
def restarted(both: Both) -> Both:
    """Both brokers with topics whose records are of two leader epochs, which have the same numbers.

    A restart gives Apache Kafka's partitions two new leader epochs (no leader, a leader), kwire's one, and that only
    when it was killed.
    """
    for side in both.sides(PREFIX):
        for label in ("topic", "empty", "deleted"):
            side.topic(label)
        fill(side, TOPIC, batch(3), batch(2))
        fill(side, DELETED, batch(5))
        side.close()
    both.kafka.stop()
    both.kafka.config.update(SETTINGS)
    both.kwire.config.update(SETTINGS)
    both.kafka.start()
    kafka, kwire = both.sides(PREFIX)
    epoch = leader_epoch(kafka, TOPIC)
    while leader_epoch(kwire, TOPIC) < epoch:
        kwire.close()
        both.kwire.kill()
        both.kwire.start()
    for side in (kafka, kwire):
        for name in (TOPIC, EMPTY, DELETED):
            assert leader_epoch(side, name) == epoch
        fill(side, TOPIC, batch(4))
        side.call(delete_records(DELETED, 5))
        side.close()
    return both


def leader_epoch(side: Side, topic: str) -> int:
    """The topic's leader epoch once there is a leader."""
    side.settle_topic(topic, 1)
    topics = [MetadataRequestTopic(name=topic)]
    response = side.call(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
    return response.topics[0].partitions[0].leader_epoch


def test_the_records_are_there(restarted: Both) -> None:
    def scenario(side: Side) -> None:
        for topic in (TOPIC, EMPTY, DELETED):
            side.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False))
            for offset in (0, 5, 8):
                side.ask(fetch(side, topic, offset), note=f"from {offset} {topic}")
            for timestamp in (EARLIEST, LATEST, -3, 0, 1_700_000_000_000):
                side.ask(list_offsets(topic, timestamp), note=f"{timestamp} {topic}")

    restarted.agree(scenario)


def test_ends_of_epochs(restarted: Both) -> None:
    def scenario(side: Side) -> None:
        for topic in (TOPIC, EMPTY, DELETED):
            now = leader_epoch(side, topic)
            epochs = {"none": -1, "first": 0, "between": now - 1, "current": now, "next": now + 1, "far": now + 50}
            for of, epoch in epochs.items():
                for in_, current in epochs.items():
                    for version in (2, 4):
                        request = epoch_ends(topic, epoch, current=current)
                        side.ask(request, version, note=f"{of} in {in_} {topic}")

    restarted.agree(scenario)


def test_fetching_in_an_epoch(restarted: Both) -> None:
    def scenario(side: Side) -> None:
        for topic in (TOPIC, EMPTY, DELETED):
            now = leader_epoch(side, topic)
            epochs = {"none": -1, "first": 0, "between": now - 1, "current": now, "next": now + 1}
            for of, epoch in epochs.items():
                for offset in (0, 4, 5, 6, 9, 10, 50):
                    for version in (9, 12, 18):
                        request = fetch(side, topic, offset, version, current_leader_epoch=epoch)
                        side.ask(request, version, note=f"from {offset} in {of} {topic}")
                        if version >= 12:
                            request = fetch(side, topic, offset, version, last_fetched_epoch=epoch)
                            side.ask(request, version, note=f"from {offset} after {of} {topic}")

    restarted.agree(scenario)


def test_listing_in_an_epoch(restarted: Both) -> None:
    def scenario(side: Side) -> None:
        for topic in (TOPIC, EMPTY, DELETED):
            now = leader_epoch(side, topic)
            epochs = {"none": -1, "first": 0, "between": now - 1, "current": now, "next": now + 1}
            for of, epoch in epochs.items():
                for timestamp in (EARLIEST, LATEST, 0):
                    for version in (4, 11):
                        request = list_offsets(topic, timestamp, current_leader_epoch=epoch)
                        side.ask(request, version, note=f"{timestamp} in {of} {topic}")

    restarted.agree(scenario)


def test_no_topics_are_created(restarted: Both) -> None:
    def scenario(side: Side) -> None:
        for version in range(14):
            topics = [MetadataRequestTopic(name=side.name("absent"))]
            for _ in range(2):
                side.ask(MetadataRequest(topics=topics), version)

    restarted.agree(scenario)


def test_no_topics_are_deleted(restarted: Both) -> None:
    def scenario(side: Side) -> None:
        for version in range(1, 6):
            for names in ([TOPIC], [side.name("absent")], [TOPIC, EMPTY], []):
                side.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=10_000), version, note=f"{len(names)}")
        topic_id = side.settle_topic(TOPIC, 1)
        for state in (
            DeleteTopicState(name=TOPIC),
            DeleteTopicState(name=None, topic_id=topic_id),
            DeleteTopicState(name=None, topic_id=b"an unknown topic"),
            DeleteTopicState(name=None),
        ):
            side.ask(DeleteTopicsRequest(topics=[state], timeout_ms=10_000))

    restarted.agree(scenario)
