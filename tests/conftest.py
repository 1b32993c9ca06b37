"""Settings of all unit tests, and what any of them may need."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does; that is no fault of what is tested.
settings.register_profile("kwire", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kwire")


@pytest.fixture
def no_collector() -> Iterator[None]:
    """The garbage collector does not come for what is in a cycle: on a quiet broker it may be long in coming."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
