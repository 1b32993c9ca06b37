"""Events without end are logged a few times, and then counted."""

from __future__ import annotations

import logging

import pytest
import trio

from kwire.broker.limited_log import INTERVAL_SECONDS, MOST, LimitedLog

logger = logging.getLogger("kwire.broker.test")
FLOOD = 1000


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return found


async def test_the_first_are_told_and_the_others_counted(caplog, nursery, autojump_clock) -> None:
    limited = LimitedLog()
    nursery.start_soon(limited.run)
    for number in range(FLOOD):
        limited.warning(logger, "frame refused", "number=%d", number)
    assert messages(caplog) == [f"frame refused number={number}" for number in range(MOST)]
    await trio.sleep(INTERVAL_SECONDS + 1)
    assert messages(caplog) == [f"frame refused more={FLOOD - MOST} seconds={INTERVAL_SECONDS}"]


async def test_after_an_interval_all_begins_anew(caplog, nursery, autojump_clock) -> None:
    limited = LimitedLog()
    nursery.start_soon(limited.run)
    for _ in range(3):
        for number in range(MOST):
            limited.warning(logger, "frame refused", "number=%d", number)
        assert len(messages(caplog)) == MOST
        await trio.sleep(INTERVAL_SECONDS + 1)
        assert messages(caplog) == []


async def test_each_kind_of_event_is_counted_for_itself(caplog) -> None:
    limited = LimitedLog()
    for number in range(FLOOD):
        limited.warning(logger, "frame refused", "number=%d", number)
    messages(caplog)
    limited.warning(logger, "address refused", "number=%d", 1)
    limited.error(logger, "frame refused", "number=%d", 2)
    limited.warning(logging.getLogger("kwire.broker.other"), "frame refused", "number=%d", 3)
    assert messages(caplog) == ["address refused number=1", "frame refused number=2", "frame refused number=3"]


async def test_what_was_left_out_is_told_at_the_end(caplog) -> None:
    limited = LimitedLog()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(limited.run)
        for number in range(MOST + 1):
            limited.warning(logger, "frame refused", "number=%d", number)
        await trio.testing.wait_all_tasks_blocked()
        messages(caplog)
        nursery.cancel_scope.cancel()
    assert messages(caplog) == [f"frame refused more=1 seconds={INTERVAL_SECONDS}"]


async def test_an_error_has_its_traceback(caplog) -> None:
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        LimitedLog().error(logger, "request failed", "api=%s", "FETCH", exc_info=True)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
