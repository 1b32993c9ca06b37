"""`kwire serve`: its arguments, by both ways in."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.cli import serve as serve_module
from kwire.cli.app import app
from kwire.cli.serve import flags
from kwire.cli.serve_options import OPTIONS, parse_plainly
from kwire.config.errors import ConfigError

ARGUMENTS = st.lists(
    st.one_of(
        st.sampled_from([option.flag for option in OPTIONS]),
        st.sampled_from([option.flag + "=" for option in OPTIONS]),
        st.sampled_from(
            ["--listen=localhost:0", "--set=a=b", "a=b", "file", "", "-", "--", "-h", "--help", "--lis", "x y"]
        ),
    ),
    max_size=6,
)


def by_click(arguments: list[str]) -> dict[str, Any] | None:
    """What `serve` is called with by way of Click; None where it is not."""
    calls: list[dict[str, Any]] = []

    def record(**values: Any) -> int:
        calls.append({name: value for name, value in values.items() if value})
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serve_module, "serve", record)
        CliRunner().invoke(app, ["serve", *arguments], catch_exceptions=False)
    return calls[0] if calls else None


@settings(max_examples=300, deadline=None)
@given(ARGUMENTS)
def test_what_is_read_plainly_means_the_same_to_click(arguments: list[str]) -> None:
    plain = parse_plainly(arguments)
    if plain is not None:
        assert by_click(arguments) == plain or (plain == {} and by_click(arguments) == {})


def test_plain_arguments_are_read_plainly() -> None:
    """Otherwise the property above would hold for nothing."""
    assert parse_plainly([]) == {}
    arguments = ["server.properties", "--listen", ":0", "--data-dir", "a", "--set", "k=v", "--data-dir=b"]
    arguments += ["--log-level", "info", "--set=x=y=z"]
    assert parse_plainly(arguments) == {
        "properties": "server.properties",
        "listen": ":0",
        "data_dir": ("a", "b"),
        "set": ("k=v", "x=y=z"),
        "log_level": "info",
    }


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], ["--listen"], ["a", "b"], ["--unknown", "x"], ["--listen", "a", "--listen", "b"]]
)
def test_what_needs_click_is_left_to_it(arguments: list[str]) -> None:
    assert parse_plainly(arguments) is None


@pytest.mark.parametrize(
    ("listen", "listeners"),
    [
        ("localhost:9092", "PLAINTEXT://localhost:9092"),
        ("0.0.0.0:0", "PLAINTEXT://0.0.0.0:0"),
        (":9092", "PLAINTEXT://:9092"),
        ("9092", "PLAINTEXT://:9092"),
        ("[::1]:9092", "PLAINTEXT://[::1]:9092"),
    ],
)
def test_where_to_listen(listen: str, listeners: str) -> None:
    assert flags(listen, [], []) == {"listeners": listeners}


@pytest.mark.parametrize(
    "listen", ["localhost", "localhost:", "localhost:x", "localhost:70000", "localhost:" + "9" * 5000, "::1:9092", ""]
)
def test_nowhere_to_listen(listen: str) -> None:
    with pytest.raises(ConfigError, match=r"--listen .*must be HOST:PORT"):
        flags(listen, [], [])


def test_settings_and_folders() -> None:
    assert flags(None, ["a", "b"], ["log.dirs=c", "x = y=z"]) == {"log.dirs": "a,b", "x": " y=z"}
    with pytest.raises(ConfigError, match="must be KEY=VALUE"):
        flags(None, [], ["x"])
    with pytest.raises(ConfigError, match="comma"):
        flags(None, ["a,b"], [])


@pytest.mark.parametrize(
    "arguments", [["--set", "num.partitions=x"], ["--set", "num.partitions=x", "--log-level", "info"]]
)
def test_a_bad_configuration_is_one_line(kwire, arguments: list[str]) -> None:
    assert parse_plainly(arguments) is not None
    result = kwire("serve", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("kwire: ")
    assert "num.partitions" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_wrong_log_level_is_one_line(kwire) -> None:
    result = kwire("serve", "--log-level", "loud")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "--log-level loud: must be one of debug, info, warning, error" in result.stderr


def test_the_configuration_reaches_the_broker(kwire, monkeypatch, tmp_path) -> None:
    from kwire.broker import serve

    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nlog.retention.ms=1\nlog.dirs=elsewhere\n")
    monkeypatch.setenv("KWIRE_LOG_RETENTION_MS", "2")
    started = []
    monkeypatch.setattr(serve, "run", lambda config, level: started.append((config, level)) or 7)
    result = kwire("serve", str(file), "--data-dir", "here", "--set", "log.roll.ms=4", "--listen", "localhost:1")
    assert result.exit_code == 7
    ((config, level),) = started
    assert (config["num.partitions"], config["log.retention.ms"], config["log.roll.ms"]) == (3, 2, 4)
    assert config.log_dirs == ("here",)
    assert config.text("listeners") == "PLAINTEXT://localhost:1"
    assert level == "warning"


@pytest.mark.parametrize(("arguments", "imported"), [(["--listen", "x"], False), (["--listen", "x", "--"], True)])
def test_a_plain_start_does_not_import_click(arguments: list[str], imported: bool) -> None:
    """Nor Trio before the configuration is known to be good."""
    code = (
        "import sys; from kwire.__main__ import main; sys.argv = ['kwire', 'serve', *sys.argv[1:]]\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, 'click' in sys.modules, 'trio' in sys.modules)"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", str(imported), "False"]
    assert done.stderr.startswith("kwire: --listen x: must be HOST:PORT")
