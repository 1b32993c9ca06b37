"""Whose checkpoint it is: Spark itself goes on with any, and leaves out or mixes what does not belong together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_jobs.faults import Fault

FILE = "job.json"
_SPARKS = ("metadata", "offsets")
"""What Spark writes there at once."""


def claim(
    checkpoint: Path,
    job: str,
    topics: Mapping[str, str],
    meaning: Mapping[str, Any],
    clusters: Mapping[str, str | None] | None = None,
) -> None:
    """Notes for whom the checkpoint is kept; raises Fault where it is for something else, or can't be written.

    `topics` are those that are read, with their ids; `meaning` is what must stay the same from run to run; `clusters`
    are ids of those that are read from and written to, by what users are to call them, None where one has no id.
    """
    given = {"job": job, "clusters": {name: each for name, each in (clusters or {}).items() if each is not None}}
    given |= {"topics": dict(topics), **{name: _plain(value) for name, value in meaning.items()}}
    try:
        checkpoint.mkdir(parents=True, exist_ok=True)
        file = checkpoint / FILE
        begun = any((checkpoint / name).exists() for name in _SPARKS)
        if file.exists() and begun:
            before = json.loads(file.read_text())
            _compare(checkpoint, before, given)
            # Older claims know less of the clusters.
            given = before | given | {"clusters": before.get("clusters", {}) | given["clusters"]}
        elif begun:
            raise Fault(f"{checkpoint} is a checkpoint, but not of a job like this: give another one")
        draft = checkpoint / f"{FILE}.draft"
        draft.write_text(json.dumps(given, indent=1) + "\n")
        draft.replace(file)
    except OSError as error:
        raise Fault(f"{checkpoint}: {error.strerror}") from None
    except ValueError:
        raise Fault(f"{checkpoint / FILE} is damaged: give another checkpoint") from None


def _compare(checkpoint: Path, before: dict[str, Any], given: dict[str, Any]) -> None:
    if before.get("job") != given["job"]:
        raise Fault(f"{checkpoint} is a checkpoint of {before.get('job')}: give another one")
    known = before.get("clusters", {})
    for name, identity in given["clusters"].items():
        if known.get(name, identity) != identity:
            raise Fault(f"{checkpoint} is for another {name}, {known[name]}, not {identity}: give another one")
    old, new = before.get("topics", {}), given["topics"]
    if sorted(old) != sorted(new):
        raise Fault(f"{checkpoint} is for {', '.join(old)}, not for {', '.join(new)}: give another one")
    for topic, identity in new.items():
        if old[topic] != identity:
            raise Fault(
                f"{topic} was made anew since {checkpoint} was begun: with another one the job reads it from its start"
            )
    for name, value in given.items():
        if name not in ("topics", "clusters") and before.get(name) != value:
            raise Fault(f"{checkpoint} is for {name} {_shown(before.get(name))}, not {_shown(value)}: give another one")


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _shown(value: Any) -> str:
    return "none" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
