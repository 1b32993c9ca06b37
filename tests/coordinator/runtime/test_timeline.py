"""State on a timeline, against a list of whole copies of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kwire.coordinator.runtime.timeline import Timeline, TimelineDict

KEYS = st.sampled_from("abc")
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 9)), max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), CHANGES),
        st.tuples(st.just("commit"), st.integers(0, 5)),
        st.tuples(st.just("revert"), st.integers(0, 5)),
    ),
    max_size=30,
)


@given(STEPS)
def test_agrees_with_whole_copies(steps: list) -> None:
    timeline = Timeline()
    state: TimelineDict[str, int] = TimelineDict(timeline)
    copies: list[dict[str, int]] = [{}]  # the committed state, and the state after each uncommitted write
    numbers: list[int] = []
    for kind, argument in steps:
        if kind == "write":
            numbers.append(timeline.begin())
            now = dict(copies[-1])
            for key, value in argument:
                if value is None:
                    assert state.pop(key) == now.pop(key, None)
                else:
                    state[key] = now[key] = value
            timeline.end()
            copies.append(now)
        elif numbers and kind == "commit":
            count = min(argument, len(numbers))
            if count:
                timeline.commit(numbers[count - 1])
                del numbers[:count], copies[:count]
        elif numbers and kind == "revert" and argument < len(numbers):
            timeline.revert(numbers[argument])
            del numbers[argument:], copies[argument + 1 :]
        assert dict(state.items()) == copies[-1]
        assert dict(state.committed_items()) == copies[0]
        assert {key: state.committed(key) for key in "abc"} == {key: copies[0].get(key) for key in "abc"}
        assert {key: state.get(key) for key in "abc"} == {key: copies[-1].get(key) for key in "abc"}
        assert len(state) == len(copies[-1])


def test_what_is_changed_outside_a_write_is_committed_at_once() -> None:
    state: TimelineDict[str, int] = TimelineDict(Timeline())
    state["a"] = 1
    assert state.committed("a") == 1
