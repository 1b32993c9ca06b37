"""Topics that cannot be tiered, since tiered storage is not switched on; in `compat_tests/tiered_oracle` it is."""

from __future__ import annotations

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.remote_storage_configs import change_each, create_each
from compat_tests.oracle.sides import Side

pytestmark = pytest.mark.xdist_group("oracle")


def test_creating_topics(both: Both) -> None:
    both.agree(lambda side: create_each(side))


def test_changing_topics(both: Both) -> None:
    def scenario(side: Side) -> None:
        change_each(
            side,
            [
                side.topic("plain"),
                side.topic("local", local_retention_ms="5"),
                side.topic("compacted", cleanup_policy="compact"),
            ],
        )

    both.agree(scenario)
