"""Whether there is room for what is to be copied."""

from __future__ import annotations

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.marks import Mode
from kwire.cluster.adoption.plan import Plan
from kwire.ports.copying import nearest_folder, same_volume
from kwire.ports.files import FileSystem
from kwire.storage import layout


def check_room(files: FileSystem, plan: Plan) -> None:
    """Raises AdoptionError where a volume has too little, which several targets may share."""
    if plan.mode is not Mode.COPY:
        return
    volumes: dict[str, list[int]] = {}
    for number, target in enumerate(plan.targets):
        folder = nearest_folder(target)
        volume = next((other for other in volumes if same_volume(other, folder)), folder)
        volumes.setdefault(volume, []).append(number)
    for volume, numbers in volumes.items():
        wanted = sum(carry.bytes for carry in plan.carries if carry.target in numbers)
        _, usable = files.space(volume)
        usable += sum(_left_by_a_copy(files, plan, plan.targets[number]) for number in numbers)
        if wanted > usable:
            where = " and ".join(plan.targets[number] for number in numbers)
            raise AdoptionError(f"{where} has room for {usable} bytes, and {wanted} are to be copied there")


def _left_by_a_copy(files: FileSystem, plan: Plan, target: str) -> int:
    """Bytes in partitions' folders that are removed before the copy begins."""
    mark = plan.before.unfinished.get(target)
    if mark is None or mark.mode is not Mode.COPY:
        return 0
    folders = [f"{target}/{name}" for name in plan.before.may_go(files, target) if layout.parse_partition_dir(name)]
    return sum(files.file_size(f"{folder}/{name}") for folder in folders for name in files.list(folder))
