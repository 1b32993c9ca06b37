"""Settings of all unit tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does; that is no fault of what is tested.
settings.register_profile("kwire", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kwire")
