"""`kwire log dirs`: the log dirs of all brokers, and what moves between them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.commands import Command
from kwire.cli.options import cluster_options, format_option, open_client
from kwire.cli.output import show_json, show_table
from kwire.cli.running import run_async

if TYPE_CHECKING:
    from kwire.client.log_dirs import LogDirState


@click.command("dirs", cls=Command)
@format_option("JSON has the partitions on their way, too.")
@cluster_options
def dirs(as_json: bool, bootstrap: str, timeout: float) -> None:
    """Shows the log dirs of all brokers.

    How much lies in each, what its volume has left, whether it is offline, and
    how many partitions are on their way there from another dir. In a pipe:
    lines of broker, dir, state, partitions, bytes, moving in, usable bytes,
    total bytes, by tabs.
    """
    from kwire.client.log_dirs import log_dirs

    found: list[LogDirState] = []

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            found.extend(await log_dirs(client))

    run_async(main)
    if as_json:
        show_json([_json(log_dir) for log_dir in found])
        return
    columns = ["BROKER", "DIR", "STATE", ">PARTITIONS", ">SIZE", ">MOVING IN", ">USABLE", ">TOTAL"]
    show_table(columns, [_row(log_dir) for log_dir in found])


def _state(log_dir: LogDirState) -> str:
    from kwire.protocol.errors import ErrorCode

    if not log_dir.error_code:
        return "online"
    if log_dir.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
        return "offline"
    return ErrorCode(log_dir.error_code).name


def _row(log_dir: LogDirState) -> list[object]:
    here = [replica for replica in log_dir.replicas if not replica.is_future]
    state = _state(log_dir)
    if state != "online":
        return [log_dir.broker, log_dir.path, state, None, None, None, None, None]
    return [
        log_dir.broker,
        log_dir.path,
        state,
        len(here),
        _shown(sum(replica.size for replica in log_dir.replicas)),
        len(log_dir.replicas) - len(here),
        _shown(log_dir.usable_bytes),
        _shown(log_dir.total_bytes),
    ]


def _shown(size: int) -> object:
    from kwire.cli.byte_sizes import human_bytes

    if size < 0:
        return None
    return human_bytes(size) if sys.stdout.isatty() else size


def _json(log_dir: LogDirState) -> dict[str, Any]:
    here = [replica for replica in log_dir.replicas if not replica.is_future]
    coming = [replica for replica in log_dir.replicas if replica.is_future]
    return {
        "broker": log_dir.broker,
        "dir": log_dir.path,
        "state": _state(log_dir),
        "partitions": len(here),
        "bytes": sum(replica.size for replica in log_dir.replicas),
        "usable_bytes": log_dir.usable_bytes,
        "total_bytes": log_dir.total_bytes,
        "moving_in": [
            {"topic": each.topic, "partition": each.partition, "bytes": each.size, "offset_lag": each.lag}
            for each in coming
        ],
    }
