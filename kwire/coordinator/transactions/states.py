"""The states of a transactional id, and the way between them.

    Empty ──────────► Ongoing ───► PrepareCommit ───► CompleteCommit
      ▲                  │ ▲                               │
      │                  │ └──────────────── AddPartitions ┤
      │                  ▼                                 │
      └── InitProducerId ┴───────► PrepareAbort ────► CompleteAbort

From Empty, CompleteCommit and CompleteAbort a client of transaction version 2 may abort without having begun: it does
not always know whether its partition was added. Dead and PrepareEpochFence are never written: the first is a
transactional id whose tombstone is on its way, the second one whose producer is being fenced, which this coordinator
does in one step with PrepareAbort.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """By the number that the records have."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """As ListTransactions and DescribeTransactions call it."""
        return self.name.title().replace("_", "")

    @property
    def prepared(self) -> bool:
        """Whether the end is decided and markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


_S = TransactionState

PREVIOUS: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
}
"""From which states each may be written."""

BY_TITLE: Final = {state.title: state for state in TransactionState}
