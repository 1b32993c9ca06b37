"""Topic names; the messages are those of Apache Kafka 4.3.1."""

from __future__ import annotations

import pytest

from kwire.metadata.names import INTERNAL_TOPICS, by_metric_name, check_collision, check_name, name_error
from kwire.protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "__consumer_offsets", "-", "_"])
def test_legal_names(name: str) -> None:
    assert name_error(name) is None
    check_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        (
            "bad name",
            "'bad name' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
        ("ü", "'ü' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a/b", "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("٣", "'٣' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_illegal_names(name: str, reason: str) -> None:
    with pytest.raises(KafkaError) as error:
        check_name(name)
    assert error.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert error.value.message == f"Topic name is invalid: {reason}"


def test_names_that_metrics_confuse() -> None:
    for name, other in (("a.b", "a_b"), ("a_b", "a.b"), ("a.b_c", "a_b.c")):
        with pytest.raises(KafkaError) as error:
            check_collision(name, by_metric_name(["x", other]))
        assert error.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert error.value.message == f"Topic '{name}' collides with existing topic: {other}"
    check_collision("ab", by_metric_name(["a.b", "ab"]))
    check_collision("a.b", by_metric_name(["a.b", "a-b", "a.bc", "a"]))


def test_internal_topics() -> None:
    assert {"__consumer_offsets", "__transaction_state", "__share_group_state"} == INTERNAL_TOPICS
