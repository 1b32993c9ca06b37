from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from compat_tests.confluent.driver import ConfluentAdmin, ConfluentDriver


@pytest.fixture
def driver(kwire_broker: Any) -> ConfluentDriver:
    from compat_tests.confluent.driver import ConfluentDriver

    return ConfluentDriver(kwire_broker.bootstrap)


@pytest.fixture
def admin(kwire_broker: Any) -> ConfluentAdmin:
    from compat_tests.confluent.driver import ConfluentAdmin

    return ConfluentAdmin(kwire_broker.bootstrap)
