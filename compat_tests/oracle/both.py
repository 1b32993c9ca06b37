"""The two brokers, asked the same things.

A test is a scenario: a function that is run once with each `Side`. What a side answers to `ask` goes into its
transcript, and `Both.agree` compares the two transcripts step by step.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from compat_tests.oracle.deviations import DEVIATIONS, Deviation
from compat_tests.oracle.normal import differences
from compat_tests.oracle.sides import Side, Step
from jvm.apache_kafka import ApacheKafka
from kwire.testing.process import BrokerProcess


class Both:
    """Runs scenarios with both brokers."""

    def __init__(self, kafka: ApacheKafka, kwire: BrokerProcess) -> None:
        self.kafka = kafka
        self.kwire = kwire
        self._scenarios = 0

    def sides(self, prefix: str) -> list[Side]:
        """Apache Kafka and kwire, for a scenario whose topics' names begin so; the caller closes them."""
        now_ms = int(time.time() * 1000)
        return [
            Side(self.kafka, eventual=True, prefix=prefix, now_ms=now_ms),
            Side(self.kwire, eventual=False, prefix=prefix, now_ms=now_ms),
        ]

    def agree(self, scenario: Callable[[Side], None], *deviations: str) -> None:
        """Fails where the brokers answered differently, and where one of the named deviations did not show."""
        __tracebackhide__ = True
        self._scenarios += 1
        prefix = f"{re.sub('[^a-z0-9]+', '-', scenario.__qualname__.split('.')[0].lower())}-{self._scenarios}"
        sides = self.sides(prefix)

        def run(side: Side) -> Sequence[Step]:
            try:
                scenario(side)
            finally:
                side.close()
            return side.steps

        with ThreadPoolExecutor(len(sides)) as pool:
            kafkas, kwires = pool.map(run, sides)
        problems = judge(kafkas, kwires, [DEVIATIONS[name] for name in deviations])
        assert not problems, "\n".join(problems)


def judge(kafkas: Sequence[Step], kwires: Sequence[Step], allowed: Sequence[Deviation]) -> list[str]:
    """A line for each difference that no deviation allows, and for each deviation that explains none."""
    assert [step.name for step in kafkas] == [step.name for step in kwires]
    problems = []
    unused = {deviation.name: deviation for deviation in allowed}
    for one, other in zip(kafkas, kwires, strict=True):
        for path, theirs, ours in differences(one.answer, other.answer):
            where = f"{one.name} {path}"
            reason = next((deviation for deviation in allowed if deviation.covers(where, theirs, ours)), None)
            if reason is None:
                problems.append(f"{where}:\n    Apache Kafka {theirs!r}\n    kwire        {ours!r}")
            else:
                unused.pop(reason.name, None)
    return problems + [f"no difference is left of the deviation {name!r}" for name in unused]
