"""A topic from before its first copy to the expiry of its last one, as consumers and admins see it."""

from __future__ import annotations

import pytest

from compat_tests.oracle.asking import delete_records
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from compat_tests.tiered_oracle.stages import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST_TIERED,
    READ_ONLY,
    SEGMENT,
    TIERED,
    ask_all,
    fill_segments,
    set_configs,
    wait_for,
)

pytestmark = pytest.mark.xdist_group("tiered oracle")

SEGMENTS = 4


def test_stages(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(**TIERED, **READ_ONLY)
        ask_all(side, topic, 0, "empty")
        end = fill_segments(side, topic, SEGMENTS)
        ask_all(side, topic, end, "nothing copied")
        set_configs(side, topic, {"remote_log_copy_disable": "false"})
        copied = SEGMENTS * SEGMENT
        wait_for(side, topic, {LATEST_TIERED: copied - 1, EARLIEST_LOCAL: 0})
        ask_all(side, topic, end, "copied")
        set_configs(side, topic, {"local_retention_bytes": "1"})
        wait_for(side, topic, {EARLIEST_LOCAL: copied, EARLIEST: 0})
        ask_all(side, topic, end, "remote")
        side.ask(delete_records(topic, SEGMENT + 1), note="into what is remote")
        wait_for(side, topic, {EARLIEST: SEGMENT + 1})
        ask_all(side, topic, end, "records deleted")
        set_configs(side, topic, {"retention_bytes": "1900"})
        wait_for(side, topic, {EARLIEST: 2 * SEGMENT})
        ask_all(side, topic, end, "expired")
        side.ask(delete_records(topic, -1), note="all")
        wait_for(side, topic, {EARLIEST: end})
        ask_all(side, topic, end, "all deleted")

    tiered.agree(scenario, "no room in remote storage")
