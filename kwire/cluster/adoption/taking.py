"""From the names of dirs to a plan."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.controller import read_state
from kwire.cluster.adoption.plan import Plan, check_sources, make_plan
from kwire.cluster.adoption.source import read_source
from kwire.cluster.adoption.targets import Mode, look_at_targets
from kwire.ports.files import FileSystem
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
    sources = [read_source(files, path) for path in paths]
    check_sources(sources)
    with_metadata = [source for source in sources if source.has_metadata]
    if len(with_metadata) != 1:
        where = " and ".join(source.path for source in with_metadata) or f"none of {', '.join(paths)}"
        raise AdoptionError(
            f"{layout.CLUSTER_METADATA_DIR} is in {where}: it must be in one (name all log.dirs, and metadata.log.dir)"
        )
    state = read_state(files, f"{with_metadata[0].path}/{layout.CLUSTER_METADATA_DIR}")
    before = look_at_targets(files, targets, paths, mode)
    return make_plan(files, sources, state, list(targets), mode, before, skip_incomplete=skip_incomplete)
