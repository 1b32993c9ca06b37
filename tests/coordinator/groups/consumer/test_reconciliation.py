"""A member's next step, in the cases that take some bringing about."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator.groups.consumer.member import ConsumerMember, MemberState
from kwire.coordinator.groups.consumer.reconciliation import Target, reconcile
from kwire.protocol.errors import ErrorCode, KafkaError

T, U = b"t" * 16, b"u" * 16


def step(
    member: ConsumerMember, owned: Any, *, epoch: int = 2, target: Any = None, subscribed: Any = (T, U), **more: Any
) -> ConsumerMember:
    wanted = Target(epoch, {T: frozenset({0, 1})} if target is None else target, subscribed)
    options = {"is_taken": lambda topic_id, index: False, "subscription_changed": False, **more}
    return reconcile(member, wanted, owned, **options)


def test_a_member_in_a_state_of_a_later_version_begins_anew() -> None:
    member = ConsumerMember("m", 1, state=MemberState.UNKNOWN)
    for owned in (None, {T: [0]}):
        with pytest.raises(KafkaError, match="unknown state") as raised:
            step(member, owned)
        assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(member, {}) == ConsumerMember("m", 2, 1, assigned={T: {0: 2, 1: 2}})


def test_who_has_yet_to_let_go_loses_what_it_does_not_subscribe_to_any_more() -> None:
    member = ConsumerMember(
        "m", 1, state=MemberState.UNREVOKED_PARTITIONS, assigned={T: {0: 1}, U: {0: 1}}, pending_revocation={T: {1: 1}}
    )
    assert step(member, {T: [0, 1], U: [0]}) is member
    changed = step(member, {T: [0, 1], U: [0]}, subscribed=(T,), subscription_changed=True)
    assert changed == ConsumerMember(
        "m",
        1,
        1,
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned={T: {0: 1}},
        pending_revocation={T: {1: 1}, U: {0: 1}},
    )


def test_what_is_unsubscribed_and_already_let_go_of_just_goes() -> None:
    member = ConsumerMember("m", 2, assigned={T: {0: 1}, U: {0: 1}})
    changed = step(member, {T: [0]}, subscribed=(T,), subscription_changed=True)
    assert changed == ConsumerMember("m", 2, 2, assigned={T: {0: 1}})


def test_a_subscription_that_changes_nothing_here() -> None:
    member = ConsumerMember("m", 2, assigned={T: {0: 1}})
    assert step(member, None, subscribed=(T,), subscription_changed=True) is member


def test_what_it_has_yet_to_let_go_of_it_may_get_again() -> None:
    member = ConsumerMember(
        "m", 1, state=MemberState.UNREVOKED_PARTITIONS, assigned={T: {0: 1}}, pending_revocation={T: {1: 1}}
    )
    again = step(member, {T: [0]}, epoch=3, is_taken=lambda topic_id, index: index == 1)
    assert again == ConsumerMember("m", 3, 1, assigned={T: {0: 1, 1: 3}})


def test_what_others_have_is_waited_for() -> None:
    waiting = step(ConsumerMember("m", 1), {}, is_taken=lambda topic_id, index: index == 1)
    assert waiting == ConsumerMember("m", 2, 1, state=MemberState.UNRELEASED_PARTITIONS, assigned={T: {0: 2}})
    assert step(waiting, None, is_taken=lambda topic_id, index: index == 1)[3:] == waiting[3:]
    assert step(waiting, None) == ConsumerMember("m", 2, 2, assigned={T: {0: 2, 1: 2}})
