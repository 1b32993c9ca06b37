"""Building the package also writes the codec's generated modules, and compiles those of `COMPILED` where that can be
done; everything else is in pyproject.toml.

    COMPILE_KWIRE=0    leaves them as they are
    COMPILE_KWIRE=1    fails where they can't be compiled, rather than to go without
"""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import BaseError, CCompilerError

ROOT = Path(__file__).parent
WANTED = os.environ.get("COMPILE_KWIRE", "")
LIBRARY = "kwire.compiled"
"""What the modules have in common is `LIBRARY__mypyc`."""

COMPILED = [
    "kwire/broker/appendable.py",
    "kwire/broker/appends.py",
    "kwire/broker/exchange.py",
    "kwire/broker/fetch_answers.py",
    "kwire/broker/fetch_templates.py",
    "kwire/broker/fetch_without_session.py",
    "kwire/broker/frames.py",
    "kwire/broker/produce_answers.py",
    "kwire/broker/produce_outcomes.py",
    "kwire/broker/produce_templates.py",
    "kwire/broker/produce_to_one.py",
    "kwire/broker/receive_buffers.py",
    "kwire/broker/templates.py",
    "kwire/cluster/leadership.py",
    "kwire/protocol/records/crc.py",
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
    "kwire/storage/offset_index.py",
    "kwire/storage/open_files.py",
    "kwire/storage/producer_entry.py",
    "kwire/storage/producer_state.py",
    "kwire/storage/received.py",
    "kwire/storage/recent_batches.py",
    "kwire/storage/record_walk.py",
    "kwire/storage/reserve.py",
    "kwire/storage/roll_limits.py",
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
"""What most of a broker's own work is done in, one file a line (the Makefile reads them), and none with coroutines: of
what these hold, mypyc lets go later than the interpreter does."""

MYPY = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
"""What it stands on need not be there when it is built."""

BUILDS = {"bdist_wheel", "editable_wheel", "build_ext"}
"""What setup.py is asked for when the modules are needed, rather than what the package is and needs."""


def extensions() -> list[Extension]:
    if WANTED == "0":
        return []
    if BUILDS.isdisjoint(sys.argv):
        return [Extension(f"{LIBRARY}__mypyc", [])]
    from mypyc.build import mypycify

    found = mypycify([*MYPY, *COMPILED], group_name=LIBRARY)
    for extension in found:
        extension.extra_compile_args.append("-g0")  # what is for a debugger would be half of it
    return found


class BuildPy(build_py):
    """Copies the sources as ever, then writes `kwire/protocol/codec/_generated`."""

    def run(self) -> None:
        super().run()
        folder = (ROOT if self.editable_mode else Path(self.build_lib)) / "kwire/protocol/codec/_generated"
        subprocess.run([sys.executable, "-m", "kwire.protocol.codec.build", folder.absolute()], check=True, cwd=ROOT)


class BuildExt(build_ext):
    """Without a compiler for C the modules stay what they are, Python."""

    def run(self) -> None:
        try:
            super().run()
        except (CCompilerError, BaseError, OSError) as error:
            if WANTED == "1":
                raise
            print(f"kwire is installed as plain Python, which is slower: {error}", file=sys.stderr)


setup(cmdclass={"build_py": BuildPy, "build_ext": BuildExt}, ext_modules=extensions())
