from __future__ import annotations

from typing import Any

import pytest

from compat_tests.kcat.driver import KcatDriver
from compat_tests.kcat.install import kcat_program


@pytest.fixture(scope="session")
def kcat() -> str:
    return kcat_program()


@pytest.fixture
def driver(kwire_broker: Any, kcat: str) -> KcatDriver:
    return KcatDriver(kwire_broker.bootstrap, kcat)
