"""What modules that mypyc compiles may not have."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def _compiled() -> list[str]:
    for statement in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "COMPILED":
            found: list[str] = ast.literal_eval(statement.value)
            return found
    raise AssertionError("setup.py names no modules to compile")


def _stops_while_an_error_is_handled(tree: ast.AST) -> list[int]:
    """The lines where it does."""
    handlers = [
        statement
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        for handler in (*node.handlers, *node.finalbody)
        for statement in ast.walk(handler)
    ]
    return [each.lineno for each in handlers if isinstance(each, ast.Await | ast.Yield | ast.YieldFrom)]


@pytest.mark.parametrize("module", _compiled())
def test_no_coroutine_stands_still_while_an_error_is_handled(module: str) -> None:
    """Compiled, it leaves the error to whoever runs it: as that of which all errors to come are the consequence, and
    with all that its traceback has."""
    assert _stops_while_an_error_is_handled(ast.parse((ROOT / module).read_text())) == []


@pytest.mark.parametrize("part", ["except ValueError:\n        await g()", "finally:\n        return await g()"])
def test_where_one_does_is_found(part: str) -> None:
    tree = ast.parse(f"async def f():\n    try:\n        await g()\n    {part}")
    assert _stops_while_an_error_is_handled(tree) == [5]


def _deleted_arguments(tree: ast.AST) -> list[int]:
    """The lines where a function does so."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [
        statement.lineno
        for function in functions
        for statement in ast.walk(function)
        if isinstance(statement, ast.Delete)
        and {ast.unparse(target) for target in statement.targets} & _arguments(function.args)
    ]


def _arguments(asked: ast.arguments) -> set[str]:
    several = [each for each in (asked.vararg, asked.kwarg) if each is not None]
    return {each.arg for each in (*asked.posonlyargs, *asked.args, *asked.kwonlyargs, *several)}


@pytest.mark.parametrize("module", _compiled())
def test_no_argument_is_deleted(module: str) -> None:
    """Compiled, it is given back once more than it was taken, and whoever passed it crashes."""
    assert _deleted_arguments(ast.parse((ROOT / module).read_text())) == []


def test_where_one_is_deleted_is_found() -> None:
    assert _deleted_arguments(ast.parse("def f(a, *, b):\n    c = a\n    del c\n    del b")) == [4]
