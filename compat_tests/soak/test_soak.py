"""A minute of it; and that the check can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.soak.run import GROWTH_MB, LAG_S, Sample, Soaked, soak

RATE = 500.0


@pytest.mark.xdist_group("soak")
def test_a_minute(tmp_path: Path) -> None:
    soaked = soak(tmp_path, 60, RATE)
    soaked.check()
    assert soaked.samples[-1].produced > 20 * RATE


@pytest.mark.parametrize(("lag_s", "growth_mb", "holds"), [(1, 0, True), (LAG_S + 1, 0, False), (1, 20, False)])
def test_what_is_held(lag_s: float, growth_mb: float, holds: bool) -> None:
    def at(second: int) -> Sample:
        produced = int(RATE * (second + lag_s))
        return Sample(second, produced, int(RATE * second), 40 + growth_mb * second / 60, second)

    soaked = Soaked(RATE, [at(second) for second in range(60)], 1, 2)
    assert soaked.growth_mb == pytest.approx(growth_mb * 36 / 60)
    assert GROWTH_MB < 12
    if holds:
        soaked.check()
    else:
        with pytest.raises(AssertionError, match="records in"):
            soaked.check()
