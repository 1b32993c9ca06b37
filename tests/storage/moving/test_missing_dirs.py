"""Moves, and a log dir that is not here: no half of a log passes for all of it, and no log goes where nobody looks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
import trio

from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage import checkpoints, layout
from tests.storage.house import House
from tests.storage.support import CLUSTER, TOPIC_ID, append, config, manager, read_all

from .movers import ONE, TWO, Killed, a_log, folders, moved, moving

DELETED = layout.renamed_dir_name("t", 0, bytes(16), layout.DELETE_DIR)


def id_of(house: House, root: str) -> bytes:
    properties = checkpoints.decode_meta_properties(house.files.read(f"{root}/{layout.META_PROPERTIES}"))
    return uuids.from_text(properties["directory.id"])


async def start(house: House, *dirs: str, known: Collection[str] = (ONE, TWO), others: Collection[bytes] = ()) -> Any:
    """These dirs, by a broker whose metadata know the topic, `known` and `others`."""
    managed = manager(house.files, house.clock, dirs)
    await managed.lock()
    ids = {id_of(house, root) for root in known}.union(others)
    await managed.load(CLUSTER, 1, lambda topic: config(), lambda topic: TOPIC_ID, ids)
    return managed


async def killed_while(house: House, what: str, path: str) -> None:
    """A move from ONE to TWO, with a kill right after the first change of that kind and path."""
    managed = await house.start()
    log = await a_log(managed)
    for number in range(40):
        await append(log, f"record {number}")
    seen = False

    def fault(operation: str, where: str, size: int) -> None:
        nonlocal seen
        if seen:
            raise Killed
        seen = operation == what and where.startswith(path)

    house.files.fault = fault
    try:
        async with moving(managed):
            await managed.moves.move(log, managed.dirs[1])
            await trio.sleep_forever()
    except* Killed:
        pass
    house.files.fault = None
    house.kill()


async def test_a_move_that_was_over_is_over_though_a_start_came_without_the_target(autojump_clock) -> None:
    house = House([ONE, TWO])
    await killed_while(house, "rename", f"{ONE}/t-0")
    assert (folders(house, ONE), folders(house, TWO)) == ([], [])
    managed = await start(house, ONE)
    await managed.services.chores.finish_due()
    assert managed.logs == {}
    house.kill()
    managed = await start(house, ONE, TWO)
    log = managed.logs["t", 0]
    assert (log.dir, read_all(log)) == (f"{TWO}/t-0", [(n, f"record {n}") for n in range(40)])
    await managed.services.chores.finish_due()
    assert folders(house, ONE, layout.DELETE_DIR) == []


async def test_half_a_copy_is_no_log_whatever_an_earlier_move_left(autojump_clock) -> None:
    house = House([ONE, TWO])
    await killed_while(house, "write", f"{TWO}/t-0.")
    house.files.make_dirs(f"{TWO}/{DELETED}")
    managed = await start(house, TWO)
    assert managed.logs == {}
    assert folders(house, TWO) == []
    house.kill()
    managed = await start(house, ONE, TWO)
    log = managed.logs["t", 0]
    async with moving(managed):
        await moved(log, managed.dirs[1])
    assert read_all(log) == [(n, f"record {n}") for n in range(40)]


async def test_a_copy_without_its_log_is_set_aside_where_the_topic_is_known(autojump_clock) -> None:
    house = House([ONE, TWO])
    await killed_while(house, "write", f"{TWO}/t-0.")
    house.files.remove_tree(f"{ONE}/t-0")
    managed = await start(house, ONE, TWO)
    await managed.services.chores.finish_due()
    assert managed.logs == {}
    assert len(folders(house, TWO, layout.STRAY_DIR)) == 1


async def test_no_move_to_a_dir_that_may_lie_below_another_ones_volume(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed)
    managed.doubtful = {managed.dirs[1].id}
    with pytest.raises(KafkaError, match="below a volume") as refused:
        await managed.moves.move(log, managed.dirs[1])
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert managed.moves.futures == {}


async def test_nor_is_one_resumed_there(autojump_clock) -> None:
    house = House([ONE, TWO])
    await killed_while(house, "write", f"{TWO}/t-0.")
    managed = await start(house, ONE, TWO, known=[ONE], others=[b"that of the volume"])
    assert managed.logs["t", 0].dir == f"{ONE}/t-0"
    assert managed.moves.futures == {}
    assert len(folders(house, TWO, layout.FUTURE_DIR)) == 1
