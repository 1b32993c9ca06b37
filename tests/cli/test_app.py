"""The command as a whole: help, errors, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kwire as package
from kwire.cli.app import COMMANDS
from kwire.cli.log.group import SUBCOMMANDS
from kwire.cli.running import guarded, run_async
from kwire.client.errors import AdvertisedAddressUnreachable, BrokerUnreachable, ConnectionLost, RequestTimeout
from kwire.protocol.errors import ErrorCode, KafkaError


def test_help_names_every_command(kwire) -> None:
    result = kwire("--help")
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    assert listed == list(COMMANDS)
    assert "..." not in result.stdout.partition("Commands:")[2], "a summary is cut off"


@pytest.mark.parametrize(
    "command",
    [[name] for name in COMMANDS]
    + [["topics", name] for name in ("create", "list", "describe", "alter", "delete")]
    + [["groups", name] for name in ("list", "describe", "reset-offsets", "delete", "delete-offsets")]
    + [["log", name] for name in SUBCOMMANDS],
)
def test_every_command_has_help_that_fits(kwire, command: list[str]) -> None:
    for flag in ("--help", "-h"):
        result = kwire(*command, flag)
        assert result.exit_code == 0
        assert " ".join(command) in result.stdout
        assert max(map(len, result.stdout.splitlines())) <= 80
        assert "..." not in result.stdout.partition("Commands:")[2]
        assert "noqa" not in result.stdout


def test_no_command_is_help(kwire) -> None:
    for arguments in ([], ["topics"], ["groups"], ["log"]):
        assert "Commands:" in kwire(*arguments).output


def test_version(kwire) -> None:
    assert kwire("version").stdout == kwire("--version").stdout
    assert kwire("version").stdout.startswith(f"kwire {package.__version__} (Python 3.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["topisc"], "No such command 'topisc'. Did you mean 'topics'? (see kwire --help)"),
        (["topics", "descibe"], "No such command 'descibe'. Did you mean 'describe'? (see kwire topics --help)"),
        (["topics", "create"], "Missing argument 'TOPIC' (see kwire topics create --help)"),
        (["produce", "t", "--acks", "2"], "--acks 2: must be 0, 1 or all"),
        (["produce", "t", "-z", "zip"], "--compression zip: must be one of none, gzip, snappy, lz4, zstd"),
        (["produce", "t", "--idempotent", "--acks", "1"], "--idempotent needs --acks all"),
        (["produce", "t", "-D", ""], "a delimiter must not be empty (one record of a file: --whole)"),
        (["produce", "t", "-H", "=x"], "--header =x: must be NAME=VALUE (NAME alone: a null value)"),
        (["produce", "t", "-H", "\udcff=x"], "--header \\udcff=x: NAME must be UTF-8"),
        (["produce", "t", "--whole"], "--whole needs a FILE"),
        (["produce", "t", "-D", "\\q"], "--delimiter: \\q is not known (known: \\n \\r \\t \\\\ \\0 \\xNN)"),
        (
            ["produce", "t", "--timestamp", "1969-12-31"],
            "--timestamp: 1969-12-31: is before 1970, where Kafka's times begin",
        ),
        (["consume", "t", "-f", "%z"], "--format: %z is not known (known: %s %S %R %k %K %t %p %o %T %h %%)"),
        (["consume", "t", "-o", "now"], "--offset: now: must be beginning, end, OFFSET, -COUNT, s@TIME or e@TIME"),
        (
            ["consume", "t", "--isolation", "x"],
            "--isolation x: must be one of read_uncommitted, read_committed",
        ),
        (["consume", "t", "-b", "host:x"], "--bootstrap: 'host:x' is no HOST:PORT"),
        (
            ["consume", "t", "-G", "g", "-p", "0"],
            "with --group there is no --partition, and only beginning or end as --offset",
        ),
        (
            ["consume", "t", "--group", "g", "-o", "5"],
            "with --group there is no --partition, and only beginning or end as --offset",
        ),
        (
            ["consume", "t", "--group", "g", "-o", "e@5"],
            "with --group there is no --partition, and only beginning or end as --offset",
        ),
        (["topics", "create", "t", "-c", "x"], "--config x: must be KEY=VALUE"),
        (["topics", "create", "t", "--assignment", "1:x"], "--assignment 1:x: must be broker ids like 1:2,2:3"),
        (
            ["topics", "create", "t", "--assignment", "1", "-p", "1"],
            "--assignment already says how many partitions and replicas there are",
        ),
        (["topics", "alter", "t"], "nothing to alter: give --partitions, --config or --delete-config"),
        (["config"], "say what to do with the configuration: kwire config --describe [KEY]"),
    ],
)
def test_misuse_is_one_line(kwire, arguments: list[str], said: str) -> None:
    result = kwire(*arguments)
    assert result.exit_code == 2
    assert result.stderr == f"kwire: {said}\n"
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["consume", "t", "--timeout", "nan"],
        ["consume", "t", "--timeout", "inf"],
        ["consume", "t", "--timeout", "1e9"],
        ["consume", "t", "-p", "-1"],
        ["consume", "t", "-p", "2147483648"],
        ["consume", "t", "-c", "0"],
        ["produce", "t", "-p", "2147483648"],
        ["topics", "create", "t", "-p", "2147483648"],
        ["topics", "create", "t", "-r", "32768"],
        ["topics", "create", "t", "--assignment", "2147483648"],
        ["topics", "alter", "t", "-p", "2147483648"],
    ],
)
def test_a_number_that_no_request_has_room_for_is_one_line(kwire, arguments: list[str]) -> None:
    result = kwire(*arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert arguments[-1] in result.stderr


@pytest.mark.parametrize("arguments", [["consume", "t", "--partitoin", "1"], ["serve", "--listne", ":0"]])
def test_a_wrong_option_is_one_line_with_a_guess(kwire, arguments: list[str]) -> None:
    result = kwire(*arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    guess = "--partition" if arguments[0] == "consume" else "--listen"
    assert result.stderr.startswith("kwire: No such option")
    assert "Did you mean" in result.stderr
    assert guess in result.stderr
    assert f"(see kwire {arguments[0]} --help)" in result.stderr


def test_only_the_subcommand_that_is_used_is_imported() -> None:
    code = (
        "import sys; from kwire.__main__ import main; sys.argv = ['kwire', 'version']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name.startswith('kwire.cli.')), 'trio' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = [f"kwire.cli.{name}" for name in ("app", "commands", "running", "version")]
    assert done.stdout.splitlines()[1] == f"{modules} False"


def test_nobody_there_is_one_line(kwire) -> None:
    result = kwire("topics", "list", "-b", "127.0.0.1:1")
    assert result.exit_code == 1
    assert result.stderr == (
        "kwire: no Kafka broker at 127.0.0.1:1: Connection refused "
        "(is it running? name another with --bootstrap HOST:PORT)\n"
    )


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "t-0"), 1, "MESSAGE_TOO_LARGE: t-0 (the topic's max.message.bytes"),
        (KafkaError(ErrorCode.INVALID_CONFIG, "bad"), 1, "INVALID_CONFIG: bad\n"),
        (
            ConnectionLost("connection to a:1 lost: x"),
            1,
            "connection to a:1 lost: x (where that happens again, the broker's log says why)\n",
        ),
        (RequestTimeout("a:1: no answer"), 1, "a:1: no answer\n"),
        (BrokerUnreachable("a:1: refused; b:2: refused"), 1, "no Kafka broker at a:1: refused; b:2: refused (is it"),
        (AdvertisedAddressUnreachable("advertised"), 1, "advertised\n"),
        (FileNotFoundError(2, "No such file", "name"), 1, "name: No such file\n"),
        (OSError("odd"), 1, "odd\n"),
    ],
)
def test_what_is_said_of_an_error(capsys, error: Exception, code: int, said: str) -> None:
    def fail() -> None:
        raise error

    assert guarded(fail) == code
    assert capsys.readouterr().err.startswith(f"kwire: {said}")


def test_ctrl_c_says_nothing(capsys) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    assert guarded(interrupt) == 130
    assert capsys.readouterr().err == ""


def test_ctrl_c_while_modules_are_imported_says_nothing() -> None:
    code = (
        "import sys; from kwire.__main__ import main; sys.argv = ['kwire', 'version']\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        guarded(lambda: 1 / 0)


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        ([ValueError("first"), OSError("second")], ValueError),
        ([ValueError("first"), KeyboardInterrupt()], KeyboardInterrupt),
        ([ExceptionGroup("inner", [OSError("deep")])], OSError),
    ],
)
def test_one_exception_of_a_group_is_told(raised: list[BaseException], told: type[BaseException]) -> None:
    async def fail() -> None:
        raise BaseExceptionGroup("several", raised)

    with pytest.raises(told):
        run_async(fail)


KWIRE = [sys.executable, "-m", "kwire"]


@pytest.mark.parametrize("environment", [{}, {"PYTHONUNBUFFERED": "1"}])
def test_output_that_nobody_reads_ends_quietly(environment: dict[str, str]) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as pipe:
        command = [*KWIRE, "config", "--describe"]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, env=environment, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("environment", [{}, {"PYTHONUNBUFFERED": "1"}])
def test_output_on_a_full_disk_is_one_line(environment: dict[str, str]) -> None:
    with open("/dev/full", "wb") as full:
        command = [*KWIRE, "config", "--describe"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, check=False)
    assert (done.returncode, done.stderr) == (1, b"kwire: No space left on device\n")


def test_a_closed_output_takes_everything() -> None:
    done = subprocess.run(["bash", "-c", f"{sys.executable} -m kwire version >&-"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    file = tmp_path / "\xfc" / "leader-epoch-checkpoint"
    file.parent.mkdir()
    file.write_text("0\n0\n")
    command = [*KWIRE, "log", "dump", str(file)]
    done = subprocess.run(command, capture_output=True, env={"PYTHONIOENCODING": "ascii"}, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"\\xfc/leader-epoch-checkpoint\n")


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("a" * 40_000, "a string of 40000 bytes"),
        ("a\udcff", "'utf-8' codec can't encode character '\\udcff'"),
    ],
)
def test_a_name_that_no_request_can_say_is_one_line(kwire_at, topic: str, said: str) -> None:
    result = kwire_at("produce", topic)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith(f"kwire: no request can say this: MetadataRequest version 13: {said}")
