"""Percentiles, as all steps tell them."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(ordered: Sequence[float], share: float) -> float:
    """Of values in ascending order the first behind that share of them, 0.99 for the p99."""
    return ordered[int(len(ordered) * share)]
