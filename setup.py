"""Building the package also writes the codec's generated modules, and compiles those of `COMPILED` where that can be
done; everything else is in pyproject.toml. What COMPILE_KWIRE is in the environment decides:

    1       it fails where they can't be compiled, rather than to go without
    0       they stay plain Python; what was compiled in this folder before is removed
    kept    what was compiled in this folder stays as it is
"""

import gc
import os
import subprocess
import sys
from pathlib import Path
from sysconfig import get_config_var

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import BaseError, CCompilerError

ROOT = Path(__file__).parent
WANTED = os.environ.get("COMPILE_KWIRE", "")
LIBRARY = "kwire.compiled"
"""What the modules have in common is `LIBRARY__mypyc`."""

COMPILED = [
    "kwire/broker/apis/fetch.py",
    "kwire/broker/appendable.py",
    "kwire/broker/appends.py",
    "kwire/broker/context.py",
    "kwire/broker/dispatch.py",
    "kwire/broker/exchange.py",
    "kwire/broker/fetch_answers.py",
    "kwire/broker/fetch_sessions.py",
    "kwire/broker/fetch_templates.py",
    "kwire/broker/fetch_without_session.py",
    "kwire/broker/fetching.py",
    "kwire/broker/frames.py",
    "kwire/broker/produce_answers.py",
    "kwire/broker/produce_outcomes.py",
    "kwire/broker/produce_templates.py",
    "kwire/broker/produce_to_one.py",
    "kwire/broker/produce_to_several.py",
    "kwire/broker/receive_buffers.py",
    "kwire/broker/session.py",
    "kwire/broker/templates.py",
    "kwire/broker/waiting_fetch.py",
    "kwire/cluster/leadership.py",
    "kwire/cluster/partition.py",
    "kwire/cluster/replica.py",
    "kwire/ports/alarms.py",
    "kwire/ports/at_once.py",
    "kwire/ports/crowd.py",
    "kwire/ports/files.py",
    "kwire/ports/tcp_sending.py",
    "kwire/ports/tcp_stream.py",
    "kwire/protocol/codec/varints.py",
    "kwire/protocol/records/header.py",
    "kwire/protocol/records/record.py",
    "kwire/protocol/records/skim.py",
    "kwire/protocol/records/survey.py",
    "kwire/protocol/records/varint.py",
    "kwire/storage/append_info.py",
    "kwire/storage/appending.py",
    "kwire/storage/batch_walk.py",
    "kwire/storage/cleaning/batch_filter.py",
    "kwire/storage/cleaning/mapping.py",
    "kwire/storage/cleaning/marks.py",
    "kwire/storage/cleaning/offset_map.py",
    "kwire/storage/leader_epochs.py",
    "kwire/storage/log.py",
    "kwire/storage/offset_index.py",
    "kwire/storage/open_files.py",
    "kwire/storage/producer_entry.py",
    "kwire/storage/producer_state.py",
    "kwire/storage/reading.py",
    "kwire/storage/received.py",
    "kwire/storage/recent_batches.py",
    "kwire/storage/reserve.py",
    "kwire/storage/roll_limits.py",
    "kwire/storage/rolling.py",
    "kwire/storage/room.py",
    "kwire/storage/segment.py",
    "kwire/storage/segment_indexes.py",
    "kwire/storage/segments.py",
    "kwire/storage/sparse_index.py",
    "kwire/storage/time_index.py",
    "kwire/storage/validated.py",
    "kwire/storage/validation.py",
    "kwire/storage/verification.py",
]
"""What most of a broker's own work is done in, one file a line (the Makefile reads them). None that goes through
millions of records in a worker thread: what is compiled does not let go of the interpreter's lock. (More in
ARCHITECTURE.md.)"""

MYPY = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
"""What it stands on need not be there when it is built."""

GENERATE = """\
from runpy import run_module
from kwire.testing import plain
plain.use()
run_module("kwire.protocol.codec.build", run_name="__main__", alter_sys=True)
"""
"""By the sources alone: what is compiled here may be of other ones."""

ASKS = {"egg_info", "dist_info", "sdist"}
"""What setup.py is asked for where nothing is built."""


def extensions() -> list[Extension]:
    if WANTED in ("0", "kept"):
        return []
    if not ASKS.isdisjoint(sys.argv):
        return [Extension(f"{LIBRARY}__mypyc", [])]
    try:
        from mypyc.build import mypycify

        # The compiler's higher levels take twice as long, and bring nothing that a broker shows.
        found = mypycify([*MYPY, *COMPILED], group_name=LIBRARY, opt_level="1")
    except (ImportError, SystemExit) as error:
        _go_without(error, "mypy")
        return []
    gc.freeze()  # else Python goes through all that mypy leaves when it ends, for half a minute and more
    for extension in found:
        extension.extra_compile_args.append("-g0")  # what is for a debugger would be half of it
        if sys.platform == "linux":
            extension.extra_link_args.append("-s")  # names that nobody asks for are a tenth
            extension.extra_link_args.append("-Wl,-z,noseparate-code")  # each is so small that most would be padding
    return found


def _go_without(error: BaseException, what: str) -> None:
    if WANTED == "1":
        raise error
    print(f"kwire is built as plain Python, which is slower, without {what}: {error}", file=sys.stderr)


def _forget_compiled(folder: Path) -> None:
    """Of an earlier build, or of one that failed: it would go before the sources."""
    for module in (folder / "kwire").rglob(f"*{get_config_var('EXT_SUFFIX')}"):
        module.unlink()


class BuildPy(build_py):
    """Copies the sources as ever, then writes `kwire/protocol/codec/_generated`."""

    def run(self) -> None:
        folder = ROOT if self.editable_mode else Path(self.build_lib)
        if WANTED != "kept":
            _forget_compiled(folder)
        super().run()
        generated = folder.absolute() / "kwire/protocol/codec/_generated"
        subprocess.run([sys.executable, "-c", GENERATE, generated], check=True, cwd=ROOT)


class BuildExt(build_ext):
    """Without a compiler for C the modules stay what they are, Python."""

    def run(self) -> None:
        try:
            super().run()
        except (CCompilerError, BaseError, OSError) as error:
            _go_without(error, "a compiler for C")
            _forget_compiled(ROOT if self.inplace else Path(self.build_lib))


setup(cmdclass={"build_py": BuildPy, "build_ext": BuildExt}, ext_modules=extensions())
