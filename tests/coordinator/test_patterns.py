"""Regular expressions of clients."""

from __future__ import annotations

import pytest

from kwire.coordinator.patterns import PatternError, whole_match


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a.*", "abc", True),
        ("b", "abc", False),
        ("ü+", "üü", True),
        ("", "", True),
        ("(a+)+$", "a" * 1000 + "b", False),
    ],
)
def test_matches_whole_texts(pattern: str, text: str, matches: bool) -> None:
    assert bool(whole_match(pattern)(text)) is matches


@pytest.mark.parametrize("pattern", ["a(", "(?=a)", r"(a)\1"])
def test_what_re2_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"\w"):
        whole_match(pattern)
