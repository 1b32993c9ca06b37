"""Numbers of bytes for people."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def human_bytes(size: float) -> str:
    """Such as `0 B`, `999 B`, `1.5 KiB`, `120 MiB`, in units of 1024."""
    unit = 0
    while abs(size) >= 1000 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{size:.1f} {_UNITS[unit]}" if unit and abs(size) < 99.95 else f"{size:.0f} {_UNITS[unit]}"
