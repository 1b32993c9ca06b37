"""Remote storage from which what was copied is gone."""

from __future__ import annotations

import pytest

from compat_tests.oracle.asking import fetch
from compat_tests.oracle.sides import Side
from compat_tests.tiered_oracle.stages import (
    EARLIEST_LOCAL,
    LATEST_TIERED,
    SEGMENT,
    TIERED,
    ask_offsets,
    fill_segments,
    wait_for,
)
from compat_tests.tiered_oracle.tiered_both import TieredBoth

pytestmark = pytest.mark.xdist_group("tiered oracle")

SEGMENTS = 2
COPIED = SEGMENTS * SEGMENT


def test_lost_objects(tiered: TieredBoth) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(**TIERED, local_retention_bytes="1")
        fill_segments(side, topic, SEGMENTS)
        wait_for(side, topic, {LATEST_TIERED: COPIED - 1, EARLIEST_LOCAL: COPIED})
        tiered.lose_objects(side, topic)
        ask_offsets(side, topic, (0,), "lost")
        for offset in (0, 7, COPIED):
            side.ask(fetch(side, topic, offset), note=f"lost: {offset}")

    tiered.agree(scenario, "remote storage that can't be read")
