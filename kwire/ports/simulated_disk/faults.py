"""What goes wrong, and at which system call."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

CHANGES = frozenset({"create", "write", "truncate", "sync", "sync_dir", "sync_volume", "rename", "remove", "make_dir"})
"""The calls after which the disk, or what is known to be on it, is another one."""


class Killed(BaseException):
    """The process is no more: from here on no call of it does anything. No `except Exception` may go on after it."""


class Call(NamedTuple):
    """A system call that is about to be made."""

    number: int
    """Counted from 0; only calls in CHANGES count, others have the number of the next one."""
    operation: str
    """One of CHANGES, "open", "read" or "list"."""
    path: str
    size: int
    """Bytes to be read or written, or to truncate to."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What becomes of a call. Without fields a write, truncation or sync does nothing and says that it has."""

    error: int | None = None
    """The errno that is raised."""
    killed: bool = False
    """The process ends here."""
    share: float = 0.0
    """Of a write: how much of it, from its beginning, is done nevertheless (0 to 1)."""


Fault = Callable[[Call], Effect | None]
"""Asked before each call; None lets it pass."""


def kill_at(number: int, share: float = 0.0) -> Fault:
    """The process ends at its change `number`; where that is a write, a share of it is done before."""
    return lambda call: (
        Effect(killed=True, share=share) if call.number >= number and call.operation in CHANGES else None
    )


def fail_at(number: int, error: int, share: float = 0.0) -> Fault:
    """The change `number` fails with this errno; where it is a write, after a share of it was done."""
    effect = Effect(error, share=share)
    return lambda call: effect if call.number == number and call.operation in CHANGES else None


def once(operation: str, effect: Effect, *, ending: str = "") -> Fault:
    """The first call of this operation, of a path that ends so, has this effect; all others pass."""
    met = False

    def fault(call: Call) -> Effect | None:
        nonlocal met
        if met or call.operation != operation or not call.path.endswith(ending):
            return None
        met = True
        return effect

    return fault


def chance(
    seed: int,
    rate: float,
    *,
    operations: Iterable[str] = ("write", "sync"),
    errors: Iterable[int] = (errno.EIO, errno.ENOSPC),
) -> Fault:
    """Each call of these operations fails with a probability, a write after a part of it. The same again for a seed."""
    draw = random.Random(seed)
    failing, numbers = frozenset(operations), tuple(errors)

    def fault(call: Call) -> Effect | None:
        if call.operation in failing and draw.random() < rate:
            return Effect(draw.choice(numbers), share=draw.random())
        return None

    return fault
