"""A load tells ProducerPerformance what to send, and reads from its output how fast that went."""

from __future__ import annotations

import pytest

from benchmarks.loads import Produce

_SUMMARY = "{} records sent, {} records/sec (103.06 MB/sec), 69.68 ms avg latency, 386.00 ms max latency, 23 ms 50th.\n"
_WARM = (
    "Warmup first 300 records. Steady state results will print after the complete test summary.\n"
    + _SUMMARY.format(120, "60.5")
    + "In steady state.\n"
    + _SUMMARY.format(280, "90.5")
    + _SUMMARY.format(400, "75.25")
    + _SUMMARY.format("100 steady state", "99.75")
)


def test_the_rate_is_that_of_the_whole_run() -> None:
    output = _SUMMARY.format(150, "60.5") + _SUMMARY.format(400, "75.25")
    assert Produce(400, 100, 1, "1").reported(output) == 75.25


def test_after_a_warm_up_the_rate_is_that_of_the_rest() -> None:
    assert Produce(100, 100, 1, "1", warm_up=300).reported(_WARM) == 99.75


@pytest.mark.parametrize("output", ["", _SUMMARY.format(399, "75.25"), _WARM])
def test_a_run_that_did_not_send_all_is_none(output: str) -> None:
    with pytest.raises(RuntimeError, match="did not send 400 records"):
        Produce(400, 100, 1, "1").reported(output)


def test_a_warm_up_is_sent_besides_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.loads.tool_command", lambda *arguments: list(arguments))
    cold = Produce(100, 10, 1, "1").command("localhost:1", "t")
    warm = Produce(100, 10, 1, "1", warm_up=300).command("localhost:1", "t")
    assert cold[cold.index("--num-records") + 1] == "100"
    assert "--warmup-records" not in cold
    assert warm[warm.index("--num-records") + 1] == "400"
    assert warm[warm.index("--warmup-records") + 1] == "300"
