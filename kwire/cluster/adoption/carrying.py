"""Doing what was planned: the data first, then what makes a broker of them.

    <target>/kwire-import.unfinished     from the first step to the last: kwire serves no dir that has it
    1. the partitions' folders
    2. checkpoints, meta.properties, and after a clean stop of the source its mark; all of it synced at once
    3. kwire-metadata.journal in the first target, synced
    4. the marks go, that of the first target last

Whatever ends it in between, it can be run again: a copy then begins anew, a move goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.folder import carried_files
from kwire.cluster.adoption.plan import Carry, Mode, Plan
from kwire.cluster.adoption.source import lock_dir
from kwire.cluster.adoption.targets import OF_NOBODY, unfinished_text
from kwire.cluster.stores.journal import CLEAN, JOURNAL, image_line
from kwire.ports.copying import copy_file, link_file
from kwire.ports.files import FileSystem
from kwire.protocol import uuids
from kwire.storage import checkpoints, layout

Advance = Callable[[int], None]


def carry_out(files: FileSystem, plan: Plan, new_id: Callable[[], bytes], advance: Advance) -> None:
    """Raises AdoptionError, and OSError where a disk fails or is full; then it can be run again."""
    _check_space(files, plan)
    with ExitStack() as locks:
        for source in plan.sources:
            lock_dir(files, source.path, locks)
        for target in plan.targets:
            _begin(files, plan, target, locks)
        for carry in plan.carries:
            _carry(files, plan, carry, advance)
        for number, target in enumerate(plan.targets):
            _write_checkpoints(files, plan, number)
            _write_identity(files, plan, target, new_id())
        for target in plan.targets:
            files.sync_volume(target)
        _write_metadata(files, plan)
        for target in reversed(plan.targets):
            files.remove(f"{target}/{layout.UNFINISHED_IMPORT}")
            files.sync_dir(target)


def _check_space(files: FileSystem, plan: Plan) -> None:
    for number, target in enumerate(plan.targets):
        wanted = sum(carry.bytes for carry in plan.carries if carry.target == number)
        if plan.mode is Mode.COPY and files.exists(target):
            _, usable = files.space(target)
            if wanted > usable:
                raise AdoptionError(f"{target} has room for {usable} bytes, and {wanted} are to be copied there")


def _begin(files: FileSystem, plan: Plan, target: str, locks: ExitStack) -> None:
    """Marks the target and empties it of what an interrupted copy left."""
    files.make_dirs(target)
    try:
        locks.callback(files.lock(f"{target}/{layout.LOCK}").release)
    except BlockingIOError:
        raise AdoptionError(f"{target} is in use by a broker or by another import") from None
    content = unfinished_text(plan.mode, [source.path for source in plan.sources], plan.targets)
    files.write_atomically(f"{target}/{layout.UNFINISHED_IMPORT}", content)
    for name in files.list(target):
        parsed = layout.parse_partition_dir(name)
        if name in OF_NOBODY or (parsed is not None and (parsed.topic, parsed.partition) in plan.before.moved):
            continue
        if target not in plan.before.unfinished:  # it was empty when the plan was made
            files.remove(f"{target}/{layout.UNFINISHED_IMPORT}")
            raise AdoptionError(f"{target} is not empty any more: {name} came there meanwhile")
        if parsed is not None:
            files.remove_tree(f"{target}/{name}")
        else:
            files.remove(f"{target}/{name}")


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


def _write_metadata(files: FileSystem, plan: Plan) -> None:
    line = image_line(plan.image)
    first = plan.targets[0]
    files.write_atomically(f"{first}/{JOURNAL}", line)
    files.write_atomically(f"{first}/{CLEAN}", b"%d\n" % len(line))
