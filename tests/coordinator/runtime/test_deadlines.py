"""Deadlines, against a plain dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kwire.coordinator.runtime.deadlines import Deadlines, Operation
from kwire.coordinator.runtime.outcome import Now

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("schedule"), st.integers(0, 5), st.integers(0, 50)),
        st.tuples(st.just("cancel"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("pop"), st.just(0), st.integers(0, 20)),
    )
)


def nothing(now: Now) -> None:
    """The operation of tests that look at when it is due only."""


@given(STEPS)
def test_agrees_with_a_dictionary(steps: list) -> None:
    deadlines = Deadlines()
    model: dict[int, tuple[int, Operation]] = {}
    now = 0
    for kind, key, number in steps:
        if kind == "schedule":

            def operation(now: Now) -> None:
                """Another one each time."""

            deadlines.schedule(key, now + number, operation)
            model[key] = now + number, operation
        elif kind == "cancel":
            deadlines.cancel(key)
            model.pop(key, None)
        else:
            now += number
            due = [model.pop(key) for key, (at, _) in list(model.items()) if at <= now]
            popped = deadlines.pop_due(now)
            assert sorted(map(id, popped)) == sorted(id(operation) for _, operation in due)
        assert len(deadlines) == len(model)
        next_ms = deadlines.next_ms()
        if model:
            assert next_ms is not None
            assert next_ms <= min(at for at, _ in model.values())


def test_operations_come_in_the_order_of_their_times() -> None:
    deadlines, seen = Deadlines(), []
    for at in (3, 1, 2):
        deadlines.schedule(at, at, lambda now, at=at: seen.append(at))
    for operation in deadlines.pop_due(3):
        operation(Now(0, 3))
    assert seen == [1, 2, 3]


def test_what_is_put_off_before_its_turn_is_not_due() -> None:
    """While the one before it is appended, say, a heartbeat comes."""
    deadlines, seen = Deadlines(), []

    def first(now: Now) -> None:
        seen.append("first")
        deadlines.schedule("later", 20, lambda now: seen.append("later"))
        deadlines.cancel("never")
        deadlines.schedule("again", 10, lambda now: seen.append("again"))
        deadlines.schedule("first", 10, lambda now: seen.append("first again"))

    deadlines.schedule("first", 1, first)
    for key in ("later", "never", "again", "as said"):
        deadlines.schedule(key, 2, lambda now, key=key: seen.append(f"too early: {key}"))
    deadlines.schedule("as said", 5, lambda now: seen.append("as said"))
    for operation in deadlines.pop_due(10):
        operation(Now(0, 10))
    assert seen == ["first", "again", "as said"]
    assert deadlines.next_ms() == 10
    for operation in deadlines.pop_due(20):
        operation(Now(0, 20))
    assert seen == ["first", "again", "as said", "first again", "later"]
    assert len(deadlines) == 0


def test_tells_of_a_sooner_deadline_only() -> None:
    deadlines = Deadlines()
    told: list[int] = []
    deadlines.on_sooner = told.append
    deadlines.schedule("a", 10, nothing)
    deadlines.schedule("b", 20, nothing)
    deadlines.schedule("a", 30, nothing)
    deadlines.schedule("b", 5, nothing)
    assert told == [10, 5]


def test_the_heap_forgets_what_was_cancelled() -> None:
    deadlines = Deadlines()
    for number in range(1000):
        deadlines.schedule(number, number, nothing)
        deadlines.cancel(number)
    assert len(deadlines._heap) < 100
    deadlines.schedule("a", 7, nothing)
    assert list(deadlines.pop_due(7)) == [nothing]
