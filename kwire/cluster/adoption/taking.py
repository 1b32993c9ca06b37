"""From the names of dirs to a plan."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.controller import read_state
from kwire.cluster.adoption.marks import Mode
from kwire.cluster.adoption.plan import Plan, check_sources, make_plan
from kwire.cluster.adoption.returning import Return, plan_return
from kwire.cluster.adoption.source import SourceDir, read_source
from kwire.cluster.adoption.state import KraftState
from kwire.cluster.adoption.targets import look_at_targets
from kwire.ports.files import FileSystem
from kwire.ports.real_files import in_use
from kwire.storage import layout


def plan_import(
    files: FileSystem, paths: Sequence[str], targets: Sequence[str], mode: Mode, *, skip_incomplete: bool
) -> Plan:
    """Looks through the log dirs of a broker; touches nothing. Paths are absolute.

    Raises AdoptionError where they cannot be taken over, OSError where one cannot be read.
    """
    for target in targets:
        if any(f"{target}/".startswith(f"{path}/") for path in paths):
            raise AdoptionError(f"{target} lies in a dir that is to be imported: choose another with --data-dir")
    if len(set(targets)) < len(targets):
        raise AdoptionError("--data-dir names a dir twice")
    sources, state = _read_kafka(files, paths)
    before = look_at_targets(files, targets, paths, mode)
    return make_plan(files, sources, state, list(targets), mode, before, skip_incomplete=skip_incomplete)


def plan_export(
    files: FileSystem, data_dirs: Sequence[str], topics: Sequence[str], paths: Sequence[str]
) -> list[Return]:
    """Looks whether the topics of kwire's `data_dirs` can go into the log dirs of a broker; touches nothing.

    Raises AdoptionError where they cannot, OSError.
    """
    for path in data_dirs:
        if in_use(f"{path}/{layout.LOCK}"):
            raise AdoptionError(f"{path} is in use by a broker: stop it first")
    targets, state = _read_kafka(files, paths)
    return plan_return(files, data_dirs, topics, targets, state)


def _read_kafka(files: FileSystem, paths: Sequence[str]) -> tuple[list[SourceDir], KraftState]:
    sources = [read_source(files, path) for path in paths]
    check_sources(sources)
    with_metadata = [source for source in sources if source.has_metadata]
    if len(with_metadata) != 1:
        where = " and ".join(source.path for source in with_metadata) or f"none of {', '.join(paths)}"
        raise AdoptionError(
            f"{layout.CLUSTER_METADATA_DIR} is in {where}: it must be in one (name all log.dirs, and metadata.log.dir)"
        )
    return sources, read_state(files, f"{with_metadata[0].path}/{layout.CLUSTER_METADATA_DIR}")
