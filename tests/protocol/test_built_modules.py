"""The generated code as it is written out when the package is built."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from kwire.broker.registry import APIS
from kwire.protocol.codec import functions
from kwire.protocol.codec.build import UNSPOKEN, build, built_messages, built_source
from kwire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

PACKAGE = "kwire.protocol.codec._generated"
SERVE = f"""
import sys
from types import ModuleType

package = ModuleType({PACKAGE!r})
package.__path__ = [sys.argv[1]]
sys.modules[{PACKAGE!r}] = package

from kwire.protocol import codec
from kwire.protocol.codec.functions import find
from kwire.protocol.messages.produce import ProduceRequest, ProduceResponse

for version in range(3, 14):
    find(ProduceRequest, version, "decode")
    codec.encode(ProduceResponse(), version)
codec.decode(ProduceRequest, 13, codec.encode(ProduceRequest(), 13))
print(sorted({{"construct", {PACKAGE!r} + ".produce_request"}} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "_generated"
    build(folder)
    return folder


@pytest.fixture
def generated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The built modules stand where the package looks for them."""
    before = [name for name in sys.modules if name.startswith(PACKAGE)]
    for name in before:
        monkeypatch.delitem(sys.modules, name)
    package = ModuleType(PACKAGE)
    package.__path__ = [str(folder)]
    monkeypatch.setitem(sys.modules, PACKAGE, package)
    yield folder
    for name in [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]


def test_every_message_that_is_spoken_has_its_module(folder: Path) -> None:
    names = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert names == {functions.module_name(message) for message in built_messages()}
    assert len(names) == 2 * (78 - len(UNSPOKEN)) + 2 * 11 + 3 + 2


def test_the_modules_are_what_the_generator_writes_now(folder: Path) -> None:
    for message in built_messages():
        assert (folder / f"{functions.module_name(message)}.py").read_text() == built_source(message)


def test_building_again_leaves_nothing_behind(folder: Path) -> None:
    (folder / "gone_request.py").write_text("")
    build(folder)
    assert not (folder / "gone_request.py").exists()


def test_building_again_writes_what_is_wrong_and_touches_nothing_else(folder: Path) -> None:
    wrong = folder / "fetch_request.py"
    wrong.write_text(wrong.read_text()[:-20])  # as one leaves it that was ended while it wrote
    before = {file: file.stat().st_mtime_ns for file in folder.glob("*.py")}
    build(folder)
    assert {file for file in before if file.stat().st_mtime_ns != before[file]} == {wrong}
    assert "FINGERPRINT = " in wrong.read_text()


def test_a_built_function_is_used(generated: Path) -> None:
    function = functions.find(ApiVersionsRequest, 4, "decode")
    assert function.__code__.co_filename == str(generated / "api_versions_request.py")


def test_a_version_that_was_not_built_is_written_now(generated: Path) -> None:
    assert functions.find(ApiVersionsResponse, 0, "decode").__code__.co_filename.startswith("<decode")


def test_a_module_older_than_its_sources_is_not_used(generated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_of_sources", 1)
    assert functions.find(ApiVersionsRequest, 4, "decode").__code__.co_filename.startswith("<decode")


def test_a_package_without_built_modules_writes_the_code_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, f"{PACKAGE}.api_versions_request", None)
    assert functions.find(ApiVersionsRequest, 4, "decode").__code__.co_filename.startswith("<decode")


def test_a_declaration_decides_on_the_fingerprint() -> None:
    module = import_module("kwire.protocol.messages.fetch")
    assert functions.fingerprint(ApiVersionsRequest) == functions.fingerprint(ApiVersionsResponse)
    assert functions.fingerprint(ApiVersionsRequest) != functions.fingerprint(module.FetchRequest)


def test_serving_needs_no_construct(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVE, str(folder)], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    assert done.stdout.strip() == f"['{PACKAGE}.produce_request']"


def test_the_command_writes_into_the_folder_it_is_given(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kwire.protocol.codec.build", str(tmp_path / "here")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"113 modules written to {tmp_path / 'here'}\n"
    assert (tmp_path / "here" / "fetch_request.py").exists()


def test_what_the_broker_serves_is_built() -> None:
    assert UNSPOKEN.isdisjoint(api.key for api in APIS)
