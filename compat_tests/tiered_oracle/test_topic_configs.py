"""Topics that may be tiered, and those that may not."""

from __future__ import annotations

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.remote_storage_configs import change_each, create_each
from compat_tests.oracle.sides import Side

pytestmark = pytest.mark.xdist_group("tiered oracle")


def test_creating_topics(tiered: Both) -> None:
    tiered.agree(lambda side: create_each(side))


def test_changing_topics(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        on = {"remote_storage_enable": "true"}
        change_each(
            side,
            [
                side.topic("plain"),
                side.topic("plain-local", local_retention_ms="5"),
                side.topic("compacted", cleanup_policy="compact"),
                side.topic("tiered", **on),
                side.topic("to-delete", **on, remote_log_delete_on_disable="true"),
                side.topic("read-only", **on, remote_log_copy_disable="true"),
                side.topic("short", **on, retention_ms="10", local_retention_ms="5"),
                side.topic("small", **on, retention_bytes="10", local_retention_bytes="5"),
            ],
        )

    tiered.agree(scenario)
