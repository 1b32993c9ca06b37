from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from compat_tests.aiokafka.driver import AiokafkaAdmin, AiokafkaDriver


@pytest.fixture
def driver(kwire_broker: Any) -> AiokafkaDriver:
    from compat_tests.aiokafka.driver import AiokafkaDriver

    return AiokafkaDriver(kwire_broker.bootstrap)


@pytest.fixture
def admin(kwire_broker: Any) -> AiokafkaAdmin:
    from compat_tests.aiokafka.driver import AiokafkaAdmin

    return AiokafkaAdmin(kwire_broker.bootstrap)
