"""Doing what was planned: the data first, then what makes a broker of them.

    <target>/kwire-import.unfinished     from the first step to the last: kwire serves no dir that has it
    <source>/kwire-import.moved          of a move, from its first step on (`moved`)
    1. the partitions' folders
    2. checkpoints, meta.properties, and after a clean stop of the source its mark; all of it synced at once
    3. kwire-metadata.journal in the first target, synced
    4. the first target's mark says how all targets were left; then the marks go, that of the first target last

Whatever ends it in between, it can be run again: a copy then begins anew, a move goes on. What it removes is what the
marks say the first run wrote (`marks`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.folder import carried_files
from kwire.cluster.adoption.marks import Mark, Mode, fingerprint, write_mark
from kwire.cluster.adoption.moved import note_moves
from kwire.cluster.adoption.plan import Carry, Plan
from kwire.cluster.adoption.room import check_room
from kwire.cluster.adoption.source import lock_dir
from kwire.cluster.adoption.targets import look_at_targets
from kwire.cluster.stores.journal import CLEAN, JOURNAL, image_line
from kwire.metadata.image import BrokerImage
from kwire.ports.copying import copy_file, link_file
from kwire.ports.files import FileSystem
from kwire.protocol import uuids
from kwire.storage import checkpoints, layout

Advance = Callable[[int], None]


def carry_out(files: FileSystem, plan: Plan, new_id: Callable[[], bytes], advance: Advance) -> None:
    """Raises AdoptionError, and OSError where a disk fails or is full; then it can be run again."""
    check_room(files, plan)
    with ExitStack() as locks:
        for source in plan.sources:
            lock_dir(files, source.path, locks)
        for target in plan.targets:
            _lock_target(files, target, locks)
        _begin(files, plan)
        _note_moves(files, plan)
        for carry in plan.carries:
            _carry(files, plan, carry, advance)
        ids = [new_id() for _ in plan.targets]
        for number, target in enumerate(plan.targets):
            _write_checkpoints(files, plan, number)
            _write_identity(files, plan, target, ids[number])
        for target in plan.targets:
            files.sync_volume(target)
        _write_metadata(files, plan, ids)
        _end(files, plan)


def _lock_target(files: FileSystem, target: str, locks: ExitStack) -> None:
    files.make_dirs(target)
    try:
        locks.callback(files.lock(f"{target}/{layout.LOCK}").release)
    except BlockingIOError:
        raise AdoptionError(f"{target} is in use by a broker or by another import") from None


def _begin(files: FileSystem, plan: Plan) -> None:
    """Empties the targets of what an interrupted copy left, and marks them.

    Until a target is empty it has the mark by which it was found to be this import's own.
    """
    before = look_at_targets(files, plan.targets, [source.path for source in plan.sources], plan.mode)
    if before.moved != plan.before.moved:
        raise AdoptionError(f"{' '.join(plan.targets)}: another import was at work there meanwhile: run it again")
    for target, mark in before.unfinished.items():
        if not files.exists(f"{target}/{layout.UNFINISHED_IMPORT}"):
            write_mark(files, target, mark)
    for number, target in enumerate(plan.targets):
        for name in before.may_go(files, target):
            if layout.parse_partition_dir(name) is not None:
                files.remove_tree(f"{target}/{name}")
            else:
                files.remove(f"{target}/{name}")
        files.sync_dir(target)
        write_mark(files, target, _mark(plan, number))


def _note_moves(files: FileSystem, plan: Plan) -> None:
    if plan.mode is not Mode.MOVE:
        return
    for source in plan.sources:
        targets = {carry.key: plan.targets[carry.target] for carry in plan.carries if carry.source is source}
        if targets:
            note_moves(files, source, targets)


def _mark(plan: Plan, number: int) -> Mark:
    partitions: list[list[str]] = [[] for _ in plan.targets]
    for key, target in plan.before.moved.items():
        partitions[target].append(layout.partition_dir_name(*key))
    for carry in plan.carries:
        partitions[carry.target].append(layout.partition_dir_name(*carry.key))
    return Mark(plan.mode, [source.path for source in plan.sources], plan.targets, partitions, number)


def _end(files: FileSystem, plan: Plan) -> None:
    if len(plan.targets) > 1:
        left = [fingerprint(files, target) for target in plan.targets]
        write_mark(files, plan.targets[0], replace(_mark(plan, 0), left=left))
    for target in reversed(plan.targets):
        files.remove(f"{target}/{layout.UNFINISHED_IMPORT}")
        files.sync_dir(target)


def _carry(files: FileSystem, plan: Plan, carry: Carry, advance: Advance) -> None:
    source = carry.source.folder(carry.key)
    target = f"{plan.targets[carry.target]}/{layout.partition_dir_name(*carry.key)}"
    if plan.mode is Mode.MOVE:
        if files.exists(target):
            raise AdoptionError(f"{target} was moved there before, and {source} is there again: remove one of them")
        files.rename(source, target)
        advance(carry.bytes)
        return
    files.make_dirs(target)
    for file in carried_files(files, carry.source, carry.key):
        if plan.mode is Mode.LINK and file.sealed:
            link_file(f"{source}/{file.name}", f"{target}/{file.name}")
            advance(file.size)
        else:
            copy_file(f"{source}/{file.name}", f"{target}/{file.name}", advance)


def _write_checkpoints(files: FileSystem, plan: Plan, number: int) -> None:
    """What the sources' checkpoints say of the partitions that are in this target now."""
    here = {key: plan.sources for key, target in plan.before.moved.items() if target == number}
    here |= {carry.key: [carry.source] for carry in plan.carries if carry.target == number}
    for name in layout.OFFSET_CHECKPOINTS:
        offsets = {}
        for key, sources in here.items():
            for source in sources:
                offset = source.offset(name, key)
                if offset is not None:
                    offsets[key] = offset
        files.write_atomically(f"{plan.targets[number]}/{name}", checkpoints.encode_offsets(offsets), sync=False)


def _write_identity(files: FileSystem, plan: Plan, target: str, directory_id: bytes) -> None:
    properties = {
        "version": "1",
        "cluster.id": plan.image.cluster_id,
        "node.id": str(plan.node_id),
        "directory.id": uuids.to_text(directory_id),
    }
    meta = checkpoints.encode_meta_properties(properties)
    files.write_atomically(f"{target}/{layout.META_PROPERTIES}", meta, sync=False)
    if plan.clean:
        files.write_atomically(f"{target}/{layout.CLEAN_SHUTDOWN}", checkpoints.encode_clean_shutdown(-1), sync=False)
    else:
        with suppress(FileNotFoundError):
            files.remove(f"{target}/{layout.CLEAN_SHUTDOWN}")


def _write_metadata(files: FileSystem, plan: Plan, ids: list[bytes]) -> None:
    """The broker counts as one that was there with all targets: a first start without one of them is found out."""
    broker = BrokerImage(plan.node_id, epoch=0, endpoints=(), fenced=True, log_dirs=tuple(ids))
    line = image_line(replace(plan.image, brokers={broker.id: broker}))
    first = plan.targets[0]
    files.write_atomically(f"{first}/{JOURNAL}", line)
    files.write_atomically(f"{first}/{CLEAN}", b"%d\n" % len(line))
