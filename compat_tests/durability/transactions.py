"""A transactional producer beside whatever else happens, which knows what became of each of its transactions."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from enum import Enum

from confluent_kafka import KafkaException, Producer

from compat_tests.exactly_once.worker import RECONNECT

RECORDS = 5
"""In a transaction."""
CALL_TIMEOUT = 20.0
"""Seconds for one step, which waits out a restart of the broker."""
GIVE_UP = 120.0
"""Seconds in which a transaction must come to its end."""


class Fate(Enum):
    """What the producer was told."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """The producer was fenced or failed amid a commit: it is one or the other, for all records alike."""


class TransactionalWriter:
    """Writes transactions in a thread of its own until `finish`."""

    def __init__(self, bootstrap: str, topic: str, seed: int) -> None:
        self.transactions: list[tuple[Fate, list[bytes]]] = []
        """In order."""
        self._random = random.Random(seed)
        self._topic = topic
        self._settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"writer-{topic}",
            "transaction.timeout.ms": 60_000,
            "linger.ms": 0,
            "log_level": 0,
            **RECONNECT,
        }
        self._ending = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Lets the last transaction come to its end. Raises what went wrong."""
        self._ending.set()
        self._thread.join(GIVE_UP)
        if self._thread.is_alive():
            raise TimeoutError(f"the transactions of {self._topic} do not come to an end")
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            producer = self._started()
            number = 0
            while not self._ending.is_set():
                values = [b"%d-%d" % (number, place) for place in range(RECORDS)]
                fate, usable = self._write(producer, values)
                self.transactions.append((fate, values))
                if not usable:
                    producer = self._started()
                number += 1
        except BaseException as error:
            self._failure = error

    def _started(self) -> Producer:
        """Another producer of that transactional id; what the last one has left open is aborted."""
        deadline = time.monotonic() + GIVE_UP
        while True:
            producer = Producer(self._settings)
            try:
                producer.init_transactions(CALL_TIMEOUT)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
            else:
                return producer

    def _write(self, producer: Producer, values: list[bytes]) -> tuple[Fate, bool]:
        """What became of a transaction, and whether the producer can be used for another."""
        fate = Fate.ABORTED
        try:
            producer.begin_transaction()
            for value in values:
                producer.produce(self._topic, value)
            if self._random.random() < 0.25:
                _retried(producer.abort_transaction)
                return fate, True
            fate = Fate.UNKNOWN
            _retried(producer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                return fate, False
            try:
                _retried(producer.abort_transaction)
            except KafkaException:  # it may have been committed in spite of all
                return fate, False
            return Fate.ABORTED, True
        return Fate.COMMITTED, True


def _retried(call: Callable[[float], None]) -> None:
    """Calls again as long as the client says that it may."""
    deadline = time.monotonic() + GIVE_UP
    while True:
        try:
            call(CALL_TIMEOUT)
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
        else:
            return
