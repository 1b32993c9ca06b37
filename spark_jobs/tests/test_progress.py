"""Every batch that ended is told, also when the query fails, and it is stopped."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.listener import StreamingQueryProgress

from spark_jobs import progress


class FailingQuery:
    """Two batches end, and then it fails, all before one looks at it."""

    def __init__(self) -> None:
        self.stopped = False
        self.recentProgress = [SimpleNamespace(timestamp=time) for time in ("2013-01-01", "2013-01-02")]

    def awaitTermination(self, seconds: float) -> bool:
        raise StreamingQueryException("failed")

    def stop(self) -> None:
        self.stopped = True


def test_batches_before_a_failure_are_told_before_it_is_raised() -> None:
    query: Any = FailingQuery()
    told: list[StreamingQueryProgress] = []
    with pytest.raises(StreamingQueryException, match="failed"):
        told.extend(progress.batches(query))
    assert told == query.recentProgress
    assert query.stopped
