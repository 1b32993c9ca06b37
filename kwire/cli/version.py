"""`kwire version`."""

from __future__ import annotations

import platform

import kwire


def version() -> None:
    """Shows the version of kwire and of its Python."""
    print(f"kwire {kwire.__version__} (Python {platform.python_version()})")
