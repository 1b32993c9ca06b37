"""ConsoleProducer, and ConsoleConsumer with a partition of its own, so without a group."""

from __future__ import annotations

import pytest

from compat_tests.java_tools.console import NULL, consume, produce
from compat_tests.java_tools.tools import JavaTools
from kwire.testing.factories import TopicFactory

pytestmark = pytest.mark.xdist_group("java")

MIB = 1024 * 1024


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_carries_records_unchanged(java_tools: JavaTools, kwire_topic: str, codec: str) -> None:
    lines = [f"n:{i}|key {i}|{'wörter ' * (i % 40)}{i}" for i in range(300)]
    assert produce(java_tools, kwire_topic, lines, "--compression-codec", codec) == ""
    got = consume(java_tools, kwire_topic, 300)
    assert [f"{line.headers}|{line.key}|{line.value}" for line in got] == lines
    assert [line.offset for line in got] == list(range(300))


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_kind_of_acknowledgement(java_tools: JavaTools, kwire_topic: str, acks: str) -> None:
    produce(java_tools, kwire_topic, ["a", "b", "c"], "--request-required-acks", acks, whole_records=False)
    assert [line.value for line in consume(java_tools, kwire_topic, 3)] == ["a", "b", "c"]


def test_headers_null_keys_and_null_values(java_tools: JavaTools, kwire_topic: str) -> None:
    lines = [
        f"{NULL}|{NULL}|{NULL}",
        f"{NULL}|key|{NULL}",
        f"{NULL}|{NULL}|value",
        f"a:1,a:2,b:{NULL},ö:|key|value",
        "a:1||",
    ]
    produce(java_tools, kwire_topic, lines)
    got = consume(java_tools, kwire_topic, len(lines))
    assert [(line.headers, line.key, line.value) for line in got] == [
        ("NO_HEADERS", NULL, NULL),
        ("NO_HEADERS", "key", NULL),
        ("NO_HEADERS", NULL, "value"),
        (f"a:1,a:2,b:{NULL},ö:", "key", "value"),
        ("a:1", "", ""),
    ]


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_timestamps_are_of_the_kind_the_topic_has(
    java_tools: JavaTools, kwire_topic_factory: TopicFactory, kind: str
) -> None:
    topic = kwire_topic_factory(configs={"message.timestamp.type": kind})
    produce(java_tools, topic, ["a", "b"], whole_records=False)
    got = [line.timestamp.partition(":") for line in consume(java_tools, topic, 2)]
    assert {name for name, _, _ in got} == {kind}
    assert all(int(time) > 1_700_000_000_000 for _, _, time in got)


def test_an_offset_to_start_from(java_tools: JavaTools, kwire_topic: str) -> None:
    produce(java_tools, kwire_topic, [str(i) for i in range(100)], whole_records=False)
    assert [line.value for line in consume(java_tools, kwire_topic, 3, offset="42")] == ["42", "43", "44"]
    assert [line.value for line in consume(java_tools, kwire_topic, 1, offset="99")] == ["99"]


def test_an_empty_topic_yields_nothing(java_tools: JavaTools, kwire_topic: str) -> None:
    place = ["--partition", "0", "--offset", "earliest", "--timeout-ms", "1000"]
    result = java_tools.run("ConsoleConsumer", "--topic", kwire_topic, *place)
    assert result.output == ""
    assert "Processed a total of 0 messages" in result.errors


@pytest.mark.parametrize("size", [MIB, 20 * MIB], ids=["1-MiB", "20-MiB"])
def test_large_messages_with_raised_limits(java_tools: JavaTools, kwire_topic_factory: TopicFactory, size: int) -> None:
    topic = kwire_topic_factory(configs={"max.message.bytes": size + 1024})
    value = "kwire" * (size // 5) + "!" * (size % 5)
    limits = ["--command-property", f"max.request.size={size + 1024}", "--max-memory-bytes", str(size * 2)]
    assert produce(java_tools, topic, [value, "small"], *limits, whole_records=False) == ""
    # The first is larger than what the consumer asks of a partition by default (1 MiB), and comes all the same.
    got = [line.value for line in consume(java_tools, topic, 2)]
    assert [len(text) for text in got] == [size, 5]
    assert got == [value, "small"]


def test_a_message_over_the_limit_is_refused(java_tools: JavaTools, kwire_topic: str) -> None:
    limits = ["--command-property", f"max.request.size={4 * MIB}"]
    errors = produce(java_tools, kwire_topic, ["x" * 2 * MIB], *limits, whole_records=False)
    assert "RecordTooLargeException" in errors
    produce(java_tools, kwire_topic, ["small"], whole_records=False)
    assert [line.value for line in consume(java_tools, kwire_topic, 1)] == ["small"]
