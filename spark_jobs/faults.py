"""What a user can put right: said in one line."""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException, StreamingQueryException


class Fault(Exception):
    """One line that says what is wrong and, where it is known, what to do."""


def explained(error: Exception) -> str | None:
    """One line for an error of Spark that is about what the user gave; None where it is about anything else."""
    if isinstance(error, Fault):
        return str(error)
    text = str(error)
    if isinstance(error, AnalysisException):
        return text.split("\n", 1)[0]
    if isinstance(error, StreamingQueryException) or "org.apache.spark" in text:
        for pattern, sentence in _KNOWN:
            found = re.search(pattern, text)
            if found:
                return sentence.format(*found.groups())
    return None


_KNOWN = (
    (r"UnknownTopicOrPartitionException", "a topic went while it was read or written"),
    (
        r"(?:Some data may have been lost|data loss|DATA_LOSS|KAFKA_DATA_LOSS)",
        "records were gone before they were read (retention, or the topic was made anew); "
        "--allow-data-loss goes on with those that are left",
    ),
    (
        r"RecordTooLargeException: (.*)",
        "{}; raise it with --kafka max.request.size=BYTES, and max.message.bytes of the topic",
    ),
    (r"TimeoutException: (.*)", "the brokers did not answer in time: {}"),
)
