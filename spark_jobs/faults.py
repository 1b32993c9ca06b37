"""What a user can put right: said in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, IllegalArgumentException, StreamingQueryException
from pyspark.logger import PySparkLogger


class Fault(Exception):
    """One line that says what is wrong and, where it is known, what to do."""


def explained(error: Exception) -> str | None:
    """One line for an error of Spark that is about what the user gave; None where it is about anything else."""
    if isinstance(error, Fault):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = str(error)
    if isinstance(error, (AnalysisException, IllegalArgumentException)):
        return text.strip().split("\n", 1)[0]
    # The causes are in Java's stack trace alone.
    text = f"{text}\n{getattr(error, '_stackTrace', '')}"
    if isinstance(error, StreamingQueryException) or "org.apache.spark" in text:
        for pattern, sentence in _KNOWN:
            found = re.search(pattern, text, re.DOTALL)
            if found:
                return sentence.format(*found.groups())
    return None


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps PySpark from writing a page of JSON to standard error about an error that it raises anyway."""
    loggers = [PySparkLogger.getLogger(name) for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


_KNOWN = (
    # Raised in a function that Spark calls for each batch.
    (r"spark_jobs\.faults\.Fault: ([^\n]*)", "{}"),
    (
        r"Malformed records are detected in record parsing: (.*?)\.?\n",
        "a value does not follow its schema: {}; --malformed drop leaves such values out",
    ),
    # Raised in SQL, by `raise_error`.
    (r"\[USER_RAISED_EXCEPTION\] ([^\n]*?)(?: SQLSTATE: \w+)*(?:\n|$)", "{}"),
    # The names in the header of a file: one that is there twice, none, or another one; or more or fewer of them.
    (
        r"CSV header does not conform to the schema[^\n]*\s+"
        r"Header: (?:[^\n]*, )?([^\n,]+), (?:[^\n]*, )?(?i:\1)(?:,[^\n]*)?\n.*?CSV file: ([^\n]+)",
        "the column {0} is there twice in {1}: name all columns with --schema, "
        "and take them by their places with --option enforceSchema=true",
    ),
    (
        r"CSV header does not conform to the schema.*?Expected: ([^\n]*?) but found: *\n\s*CSV file: ([^\n]+)",
        "CSV header does not conform to the schema: a column without a name stands where {0} should in {1}; "
        "--schema calls the first one _c0 if it has none",
    ),
    (
        r"CSV header does not conform to the schema.*?Expected: ([^\n]*?) but found: ([^\n]*)\n\s*CSV file: ([^\n]+)",
        "CSV header does not conform to the schema: {1} stands where {0} should in {2}",
    ),
    (
        r"Number of column in CSV header is not equal to number of fields in the schema:\s+"
        r"Header length: (\d+), schema size: (\d+)\s+CSV file: ([^\n]+)",
        "CSV header does not conform to the schema, which has {1} columns: there are {0} in {2}",
    ),
    # The last cause is the first one that says something.
    (r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (\S+)\. .*Caused by: ([^\n]*)", "{}: {}"),
    (r"(\w+ should be an integer\. Found [^\n]*?)\.?\n", "{}"),
    (r"univocity\.parsers\.common\.TextParsingException: ([^\n]*)", "the files can't be read so: {}"),
    # Of Spark's own error classes, those whose state says that they are about data, SQL or what Spark can't do.
    (r"(\[(?!STREAM_FAILED)[A-Z][A-Z0-9_.]+\] [^\n]*SQLSTATE: (?:0A|22|42|54)\w{3})", "{}"),
    (r"terminated with exception: (Stream-stream join [^;\n]*)", "{}"),
    (r"UnknownTopicOrPartitionException", "a topic went while it was read or written"),
    (
        r"(?:Some data may have been lost|data loss|DATA_LOSS|KAFKA_DATA_LOSS)",
        "records were gone before they were read (retention, or the topic was made anew); "
        "--allow-data-loss goes on with those that are left",
    ),
    (
        r"RecordTooLargeException: ([^\n]*)",
        "{}; raise it with max.request.size=BYTES by --kafka (or --to-kafka), and max.message.bytes of the topic",
    ),
    (r"calling \w+\.load\.\n: org\.apache\.spark\.SparkException: ([^\n]*)", "the files can't be read so: {}"),
    (r"IllegalArgumentException: (Kafka option '[^\n]*?)\.?\n", "{}"),
    (r"kafka\.common\.config\.ConfigException: ([^\n]*)", "a setting that Kafka's clients do not take: {}"),
    (
        r"SparkException: Python worker failed to connect back\..*?Caused by: ([^\n]*)",
        "Spark's Python did not connect to it: {}",
    ),
    (r"TimeoutException: ([^\n]*)", "the brokers did not answer in time: {}"),
)
