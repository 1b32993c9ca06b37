from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwire.storage.moving import move, swap


@pytest.fixture(autouse=True, scope="module")
def _small_pieces() -> Iterator[None]:
    """So that a small log takes many of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(move, "PIECE_BYTES", 200)
        patch.setattr(swap, "TAIL_BYTES", 150)
        yield
