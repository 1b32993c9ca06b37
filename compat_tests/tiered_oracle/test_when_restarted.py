"""After a restart: what is in remote storage is found again, and copies go on.

The last module by name, since the brokers have other leader epochs then.
"""

from __future__ import annotations

import pytest

from compat_tests.oracle.asking import delete_records
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from compat_tests.oracle.test_when_restarted import leader_epoch
from compat_tests.tiered_oracle.metadata_topic import tell
from compat_tests.tiered_oracle.stages import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST_TIERED,
    RECORDS,
    SEGMENT,
    TIERED,
    ask_all,
    fill_segments,
    settle,
    wait_for,
)

pytestmark = pytest.mark.xdist_group("tiered oracle")

PREFIX = "restarted"
TOPIC = f"{PREFIX}-topic"
SEGMENTS = 4
COPIED = SEGMENTS * SEGMENT


@pytest.fixture(scope="module")
def restarted(tiered: Both) -> Both:
    """Both brokers with a topic of whose remote part some records were deleted before."""
    for side in tiered.sides(PREFIX):
        side.topic(**TIERED, local_retention_bytes="1")
        fill_segments(side, TOPIC, SEGMENTS)
        wait_for(side, TOPIC, {LATEST_TIERED: COPIED - 1, EARLIEST_LOCAL: COPIED})
        side.call(delete_records(TOPIC, 1))
        side.close()
    tiered.kafka.stop()
    tiered.kafka.start()
    tiered.kwire.restart()
    kafka, kwire = tiered.sides(PREFIX)
    epoch = leader_epoch(kafka, TOPIC)
    while leader_epoch(kwire, TOPIC) < epoch:
        kwire.close()
        tiered.kwire.kill()
        tiered.kwire.start()
    for side in (kafka, kwire):
        assert leader_epoch(side, TOPIC) == epoch
        side.close()
    return tiered


def test_copies_go_on(restarted: Both) -> None:
    def scenario(side: Side) -> None:
        topic_id = side.settle_topic(TOPIC, 1)
        settle(side, TOPIC)
        wait_for(side, TOPIC, {LATEST_TIERED: COPIED - 1, EARLIEST_LOCAL: COPIED, EARLIEST: 1})
        ask_all(side, TOPIC, COPIED + RECORDS, "restarted")
        end = COPIED + RECORDS + fill_segments(side, TOPIC, 1)
        wait_for(side, TOPIC, {LATEST_TIERED: COPIED + SEGMENT - 1, EARLIEST_LOCAL: COPIED + SEGMENT})
        ask_all(side, TOPIC, end, "copied again")
        tell(side, topic_id, lambda story: len(story.states()) == SEGMENTS + 1, "copied again")

    restarted.agree(scenario, "no room in remote storage", "largest timestamp in remote storage")
