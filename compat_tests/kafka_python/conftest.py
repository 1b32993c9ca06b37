from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from compat_tests.kafka_python.driver import KafkaPythonAdmin, KafkaPythonDriver


@pytest.fixture
def driver(kwire_broker: Any) -> KafkaPythonDriver:
    from compat_tests.kafka_python.driver import KafkaPythonDriver

    return KafkaPythonDriver(kwire_broker.bootstrap)


@pytest.fixture
def admin(kwire_broker: Any) -> KafkaPythonAdmin:
    from compat_tests.kafka_python.driver import KafkaPythonAdmin

    return KafkaPythonAdmin(kwire_broker.bootstrap)
