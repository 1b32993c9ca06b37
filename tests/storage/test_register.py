from types import SimpleNamespace

import trio
from trio.testing import wait_all_tasks_blocked

from kwire.storage.register import Register


def log(partition=0):
    return SimpleNamespace(key=("t", partition))


def test_of_a_partition_there_is_the_log_that_came_last():
    register, old, new = Register(), log(), log()
    register.add(old)
    register.add(new)
    assert [each is new for each in register] == [True]
    assert new in register
    assert old not in register
    register.discard(old)
    assert len(register) == 1
    register.discard(new)
    register.discard(new)
    assert not register


def test_logs_may_come_and_go_while_it_is_walked_through():
    register = Register()
    logs = [log(0), log(1), log(2)]
    for each in logs:
        register.add(each)
    seen = []
    for each in register:
        seen.append(each)
        register.discard(logs[1])
        register.add(log(3 + len(seen)))
    assert seen == logs


async def test_who_waits_goes_on_when_the_first_log_comes_and_waits_again_when_the_last_has_gone():
    register, first = Register(), log()
    passed = []

    async def wait(name):
        await register.wait_occupied()
        passed.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "a")
        nursery.start_soon(wait, "b")
        await wait_all_tasks_blocked()
        assert passed == []
        register.add(first)
        await wait_all_tasks_blocked()
        assert sorted(passed) == ["a", "b"]
        await wait("c")
        register.discard(first)
        nursery.start_soon(wait, "d")
        await wait_all_tasks_blocked()
        assert len(passed) == 3
        register.add(log(1))
    assert passed[-1] == "d"
