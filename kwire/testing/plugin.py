"""The pytest plugin: a broker for the session, a fresh topic for a test.

    def test_orders_arrive(kwire_broker, kwire_topic):
        producer = KafkaProducer(bootstrap_servers=kwire_broker.bootstrap)
        producer.send(kwire_topic, b"order").get()

With pytest-xdist each worker is a session of its own, so each has its own broker. When a test fails, the last lines of
the log of every broker that it used are added to its report. Nothing but pytest is imported until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kwire.testing.factories import BrokerFactory, TopicFactory
    from kwire.testing.process import BrokerProcess


@pytest.fixture(scope="session")
def kwire_broker_config() -> Mapping[str, object]:
    """Settings of the session's broker, by Kafka's names. Override this fixture to choose them."""
    return {}


@pytest.fixture(scope="session")
def kwire_broker(kwire_broker_config: Mapping[str, object]) -> Iterator[BrokerProcess]:
    """A running broker with temporary data, shared by the session; `.bootstrap` (also `str()`) is its address."""
    from kwire.testing.process import BrokerProcess

    with BrokerProcess(kwire_broker_config) as broker:
        yield broker


@pytest.fixture
def kwire_broker_factory() -> Iterator[BrokerFactory]:
    """Starts brokers with their own settings: `kwire_broker_factory({"num.partitions": 3})`; all end with the test."""
    from kwire.testing.factories import BrokerFactory

    with BrokerFactory() as factory:
        yield factory


@pytest.fixture
def kwire_topic_factory(request: pytest.FixtureRequest, kwire_broker: BrokerProcess) -> TopicFactory:
    """Creates topics with unique names: `kwire_topic_factory(partitions=6, configs={"cleanup.policy": "compact"})`."""
    from kwire.testing.factories import TopicFactory

    return TopicFactory(kwire_broker, prefix=request.node.name)


@pytest.fixture
def kwire_topic(kwire_topic_factory: TopicFactory) -> str:
    """The name of a new topic with one partition."""
    return kwire_topic_factory()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        from kwire.testing.factories import brokers_among

        arguments: dict[str, Any] = getattr(item, "funcargs", None) or {}
        for broker in brokers_among(arguments.values()):
            ended = "" if broker.exit_code is None else f", which ended with exit code {broker.exit_code}"
            report.sections.append((f"log of the kwire broker {broker.bootstrap}{ended}", broker.log_tail()))
    return report
