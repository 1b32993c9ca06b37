"""The `kwire` command: `python -m kwire` and the console script."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line, and ends the process with its exit code."""
    try:
        _run()
    except KeyboardInterrupt:  # while modules are imported: later the command itself sees to it
        raise SystemExit(130) from None


def _run() -> None:
    """`kwire serve` with plain arguments does not wait for Click to be imported."""
    if sys.argv[1:2] == ["serve"]:
        from kwire.cli.serve_options import parse_plainly

        plain = parse_plainly(sys.argv[2:])
        if plain is not None:
            from kwire.cli.running import guarded
            from kwire.cli.serve import serve

            raise SystemExit(guarded(lambda: serve(**plain)))
    from kwire.cli.app import app

    app(prog_name="kwire")


if __name__ == "__main__":
    main()
