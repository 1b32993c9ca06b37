"""The steps of docker/Dockerfile, done without a container: the package as users install it, and the broker in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("image")

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
COMPOSE = (ROOT / "docker" / "compose.yaml").read_text()
README = (ROOT / "README.md").read_text()
INSTALLED = "/opt/kwire"
"""Where the image has its virtual environment."""
CORE_LIMIT = 34_000_000
"""Bytes of kwire and all that it needs, bytecode included."""
PREPARE_TIMEOUT = 600
"""Modules are compiled, while other tests have the cores."""
COMMAND_TIMEOUT = 30


def instructions(stage: int) -> list[tuple[str, str]]:
    """(instruction, its arguments) of one FROM and what follows it."""
    lines = [line for line in DOCKERFILE.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    pairs = [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]
    starts = [place for place, (word, _) in enumerate(pairs) if word == "FROM"]
    return pairs[starts[stage] : [*starts, len(pairs)][stage + 1]]


def last_stage(instruction: str) -> str:
    (found,) = [rest for word, rest in instructions(1) if word == instruction]
    return found


def environment_of_the_image() -> dict[str, str]:
    return dict(setting.split("=", 1) for setting in last_stage("ENV").split() if setting.startswith("KWIRE_"))


def environment_of_the_compose_file() -> dict[str, str]:
    return dict(re.findall(r"^ +(KWIRE_\w+): (.+)$", COMPOSE, re.MULTILINE))


def clean_environment() -> dict[str, str]:
    """This process's without what would make another Python of it, or configure kwire."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "KWIRE_", "PIP_REQUIRE", "VIRTUAL_ENV"))
    }


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first stage builds from the files that it copies, as a fresh clone has them."""
    source, prefix = tmp_path_factory.mktemp("src"), tmp_path_factory.mktemp("opt") / "kwire"
    environment = clean_environment()
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    for word, rest in instructions(0):
        if word == "COPY":
            *names, target = rest.split()
            for name in names:
                if (ROOT / name).is_dir():
                    shutil.copytree(
                        ROOT / name, source / target, ignore=shutil.ignore_patterns("__pycache__", "_generated", "*.so")
                    )
                else:
                    shutil.copy(ROOT / name, source / target)
        elif word == "RUN":
            done = subprocess.run(
                ["bash", "-ec", rest.replace(INSTALLED, str(prefix))],
                capture_output=True,
                text=True,
                timeout=PREPARE_TIMEOUT,
                cwd=source,
                env=environment,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    return prefix


@pytest.fixture(scope="module")
def packages(prefix: Path) -> Path:
    (folder,) = prefix.glob("lib/python3.*/site-packages")
    return folder


def test_the_core_install_is_small(packages: Path) -> None:
    tools = ("pip", "setuptools", "_distutils_hack", "distutils-precedence.pth", "pkg_resources")
    installed = [path for path in packages.iterdir() if not path.name.startswith(tools)]
    files = [file for path in installed for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
    assert 1_000_000 < sum(file.stat().st_size for file in files) < CORE_LIMIT
    assert {path.name for path in installed} >= {"kwire", "trio", "construct", "lz4", "cramjam"}
    assert not {path.name for path in installed} & {"pyspark", "py4j", "pytest", "compat_tests", "tests", "jvm"}


def test_what_most_is_done_in_is_compiled(prefix: Path) -> None:
    told = subprocess.run([prefix / "bin/kwire", "version"], capture_output=True, text=True, check=True)
    assert "compiled" in told.stdout


def test_the_generated_code_is_installed(packages: Path) -> None:
    modules = {file.stem for file in (packages / "kwire/protocol/codec/_generated").glob("*.py")}
    assert {"produce_request", "fetch_response"} <= modules


@pytest.mark.parametrize(
    "settings",
    [
        environment_of_the_image() | {"KWIRE_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092"},
        environment_of_the_image() | environment_of_the_compose_file(),
    ],
    ids=["image", "compose"],
)
def test_the_broker_of_the_image_is_healthy(prefix: Path, tmp_path: Path, settings: Mapping[str, str]) -> None:
    ports = free_ports(2)

    def here(text: str) -> str:
        """With the paths and ports that this test has in the place of the container's."""
        text = text.replace("/var/lib/kwire", str(tmp_path / "data"))
        return re.sub(r"\b1?9092\b", lambda port: str(ports[port[0] == "19092"]), text)

    environment = clean_environment() | {name: here(value) for name, value in settings.items()}
    environment["PATH"] = f"{prefix / 'bin'}:{environment['PATH']}"
    health = json.loads(here(last_stage("HEALTHCHECK").partition("CMD ")[2]))
    broker = subprocess.Popen(
        json.loads(last_stage("CMD")), stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    )
    try:
        assert broker.stdout is not None
        assert broker.stdout.readline().startswith("kwire ready on ")
        subprocess.run(health, check=True, timeout=COMMAND_TIMEOUT, env=environment, cwd=tmp_path)
        broker.terminate()
        assert last_stage("STOPSIGNAL") == "SIGTERM"
        assert broker.wait(COMMAND_TIMEOUT) == 0
    finally:
        broker.kill()
        broker.communicate()
    assert (tmp_path / "data" / "meta.properties").exists()


def test_nothing_is_healthy_without_a_broker(prefix: Path) -> None:
    health = json.loads(last_stage("HEALTHCHECK").partition("CMD ")[2].replace("9092", str(free_ports(1)[0])))
    done = subprocess.run([prefix / "bin" / health[0], *health[1:]], capture_output=True, timeout=COMMAND_TIMEOUT)
    assert done.returncode == 1


def test_the_listeners_of_the_readme_are_those_of_the_compose_file() -> None:
    (block,) = re.findall(r"^```\n(listeners=.*?)^```$", README, re.MULTILINE | re.DOTALL)
    named = {"KWIRE_" + key.upper().replace(".", "_"): value for key, value in re.findall(r"^(.+?)=(.+)$", block, re.M)}
    assert named == environment_of_the_compose_file()


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
