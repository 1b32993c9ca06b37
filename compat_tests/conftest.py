"""The broker under test: a kwire of this session's own, or the one that `--against` names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pytest

from compat_tests.driver import Refused
from kwire.testing.factories import TopicFactory

T = TypeVar("T")
PATIENCE = 15.0
"""Seconds for a broker other than kwire to let a change be seen everywhere."""


class BrokerUnderTest(Protocol):
    bootstrap: str
    host: str
    port: int


@dataclass(frozen=True)
class ExternalBroker:
    """A broker that this run neither started nor may stop."""

    bootstrap: str

    @property
    def host(self) -> str:
        return self.bootstrap.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    def has(self, config: Mapping[str, object]) -> bool:
        """Whether the broker's settings are these."""
        from compat_tests.confluent.driver import ConfluentAdmin

        admin = ConfluentAdmin(self.bootstrap)
        broker_id = min(admin.brokers())[0]
        settings = admin.broker_configs(str(broker_id))
        return all(key in settings and settings[key].value == str(value) for key, value in config.items())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against", metavar="HOST:PORT", help="run the compatibility tests against this broker, not kwire"
    )


def pytest_configure(config: pytest.Config) -> None:
    for message in ("read_text is deprecated", "open_text is deprecated", "alter_configs has been deprecated"):
        config.addinivalue_line("filterwarnings", f"ignore:{message}:DeprecationWarning")


@pytest.fixture(scope="session")
def against(request: pytest.FixtureRequest) -> ExternalBroker | None:
    address = request.config.getoption("--against")
    return ExternalBroker(address) if address else None


@pytest.fixture(scope="session")
def kwire_broker(request: pytest.FixtureRequest, against: ExternalBroker | None) -> Any:
    return against or request.getfixturevalue("kwire_broker")


@pytest.fixture
def kwire_broker_factory(request: pytest.FixtureRequest, against: ExternalBroker | None) -> Any:
    if against:
        pytest.skip("starts, stops or kills a broker of its own")
    return request.getfixturevalue("kwire_broker_factory")


@pytest.fixture
def broker_with(request: pytest.FixtureRequest, against: ExternalBroker | None) -> Callable[..., BrokerUnderTest]:
    """A broker with these settings that the test only talks to."""

    def start(config: Mapping[str, object]) -> BrokerUnderTest:
        if against is None:
            return request.getfixturevalue("kwire_broker_factory")(config)
        if not against.has(config):
            pytest.skip(f"needs a broker with {config}")
        return against

    return start


@pytest.fixture
def settled(against: ExternalBroker | None) -> Callable[[Callable[[], T]], T]:
    """Calls a check until it passes: once for kwire, where a change that was answered is seen by all.

    Apache Kafka answers when its controller has the change, and its brokers follow a moment later.
    """

    def settle(check: Callable[[], T]) -> T:
        deadline = time.monotonic() + (PATIENCE if against else 0)
        while True:
            try:
                return check()
            except (AssertionError, Refused):
                if time.monotonic() >= deadline:
                    raise
            time.sleep(0.05)

    return settle


@pytest.fixture
def kwire_topic_factory(
    request: pytest.FixtureRequest, against: ExternalBroker | None, settled: Callable[[Callable[[], T]], T]
) -> Iterator[Any]:
    """The plugin's factory; with another broker it waits for the topic that was promised, and deletes it afterwards."""
    factory: TopicFactory = request.getfixturevalue("kwire_topic_factory")
    if against is None:
        yield factory
        return
    from compat_tests.confluent.driver import ConfluentAdmin

    admin = ConfluentAdmin(against.bootstrap)
    created: list[str] = []

    def create(**options: Any) -> str:
        created.append(factory(**options))
        settled(lambda: admin.describe_topic(created[-1]))
        return created[-1]

    yield create
    for name in created:
        with suppress(Refused):
            admin.delete_topic(name)


@pytest.fixture
def new_name(request: pytest.FixtureRequest, kwire_broker: BrokerUnderTest) -> Callable[[], str]:
    """Makes up names that no topic has."""
    return TopicFactory(kwire_broker, prefix=request.node.name).name
