"""What the fixtures hand out besides the broker itself."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from kwire.testing.process import BrokerProcess

LONGEST_PREFIX = 200
"""Kafka allows topic names of 249 characters; the rest is for what makes a name unique."""


class Addressed(Protocol):
    """A broker, as far as topics are concerned."""

    @property
    def bootstrap(self) -> str: ...


class BrokerFactory(contextlib.ExitStack):
    """Calling it starts a broker; leaving it as a context manager closes all that it started."""

    def __init__(self) -> None:
        super().__init__()
        self.brokers: list[BrokerProcess] = []

    def __call__(self, config: Mapping[str, object] | None = None, **options: Any) -> BrokerProcess:
        """A running broker with these settings; `options` are those of `BrokerProcess`."""
        broker = BrokerProcess(config, **options)
        self.callback(broker.close)
        self.brokers.append(broker)
        return broker.start()


class TopicFactory:
    """Calling it creates a topic and returns its name."""

    def __init__(self, broker: Addressed, prefix: str = "topic") -> None:
        self._broker = broker
        self._prefix = re.sub(r"[^A-Za-z0-9._-]+", "-", prefix).strip("-.")[:LONGEST_PREFIX]

    def name(self) -> str:
        """A name that no topic has."""
        return f"{self._prefix}-{secrets.token_hex(4)}"

    def __call__(
        self, *, partitions: int = 1, configs: Mapping[str, object] | None = None, broker: Addressed | None = None
    ) -> str:
        """Creates the topic on `broker`, else on the session's; raises KafkaError where that is refused."""
        from kwire.testing.topics import create_topic

        name = self.name()
        create_topic((broker or self._broker).bootstrap, name, partitions, configs or {})
        return name


def brokers_among(values: Iterable[object]) -> Iterator[BrokerProcess]:
    """The broker processes in these values of fixtures, those of factories included, each once."""
    seen: set[int] = set()
    for value in values:
        for broker in value.brokers if isinstance(value, BrokerFactory) else [value]:
            if isinstance(broker, BrokerProcess) and id(broker) not in seen:
                seen.add(id(broker))
                yield broker
