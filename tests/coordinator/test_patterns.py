"""Regular expressions of clients."""

from __future__ import annotations

import pytest

from kwire.coordinator.patterns import Pattern, PatternError


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a.*", "abc", True),
        ("b", "abc", False),
        ("ü+", "üü", True),
        ("", "", True),
        ("(a+)+$", "a" * 1000 + "b", False),
        (r"\\C", r"\C", True),
        (r"\Q\C\E", r"\C", True),
        (r"\Q(?P<n>\E(?P<n>a)", "(?P<n>a", True),
        (r"(?P<n>a)[]\](?P<n>]{5}", "a(?P<n", True),
        (r"(?P<n>a)[[:alpha:](?P<n>]", "a(", True),
        (r"(?P<n>a)(?<m>b)\(?P<n>", "ab(P<n>", True),
    ],
)
def test_matches_whole_texts(pattern: str, text: str, matches: bool) -> None:
    assert Pattern(pattern).matches(text) is matches


@pytest.mark.parametrize("pattern", ["a(", "(?=a)", r"(a)\1", "a{1001}", "[a-z]{1000}" * 15])
def test_what_re2_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"\w"):
        Pattern(pattern)


@pytest.mark.parametrize("pattern", [r"\C", r"a\\\Cb", r"\Q\E\C", "(?P<n>a)(?P<n>b)", "(?<n>a)|x(?P<n>b)"])
def test_and_what_re2j_does_not_take(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"invalid escape sequence|duplicate capture group name"):
        Pattern(pattern)


def test_steps_grow_with_the_text_and_the_expression() -> None:
    short, long = Pattern("a"), Pattern("a" * 100)
    assert short.steps("x") < short.steps("x" * 100) < long.steps("x" * 100)


def test_an_expression_of_any_length_takes_little_time() -> None:
    """RE2 would read this class for a minute."""
    with pytest.raises(PatternError, match="pattern too large"):
        Pattern("[" + "[:a" * 100_000 + "]")
    assert Pattern("[" + "[:a" * 3_000 + "]").matches("a")
