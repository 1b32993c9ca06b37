"""Building the package also writes the codec's generated modules; everything else is in pyproject.toml."""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildPy(build_py):
    """Copies the sources as ever, then writes `kwire/protocol/codec/_generated`."""

    def run(self) -> None:
        super().run()
        root = Path(__file__).parent
        folder = (root if self.editable_mode else Path(self.build_lib)) / "kwire/protocol/codec/_generated"
        subprocess.run([sys.executable, "-m", "kwire.protocol.codec.build", folder.absolute()], check=True, cwd=root)


setup(cmdclass={"build_py": BuildPy})
