"""What a stream has done, batch by batch, while one waits for its end."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

POLL_S = 0.5
"""Spark keeps what the last hundred batches did, and takes longer than this for so many."""


def batches(query: StreamingQuery) -> Iterator[StreamingQueryProgress]:
    """What each batch did, soon after it; ends with the query. Raises what ended it; stops it when it is left."""
    last = ""
    ended = False
    failure = None
    try:
        while not ended:
            try:
                ended = query.awaitTermination(POLL_S)
            except StreamingQueryException as error:
                failure, ended = error, True
            for progress in query.recentProgress:
                if progress.timestamp > last:
                    last = progress.timestamp
                    yield progress
        if failure is not None:
            raise failure
    finally:
        query.stop()
