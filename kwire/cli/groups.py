"""`kwire groups`: list and describe consumer groups, move and delete their offsets, delete them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.commands import Argument, Group
from kwire.cli.options import Number, cluster_options, format_option, open_client, read_option, tolerating
from kwire.cli.output import show_json, show_table
from kwire.cli.running import MISUSED, CommandError, run_async

if TYPE_CHECKING:
    from kwire.cli.resets import Reset
    from kwire.client.client import Client
    from kwire.protocol.types import TopicPartition

groups = Group("groups", no_args_is_help=True, help="List, describe and delete groups, reset their offsets.")

OFFSET = Number(0, 2**63 - 1)
DISTANCE = Number(1 - 2**63, 2**63 - 1)

group_argument = click.argument("group", cls=Argument, metavar="GROUP", description="Id of the group.")
groups_argument = click.argument(
    "names", cls=Argument, metavar="GROUP", description="Ids of groups.", nargs=-1, required=True
)


def topics_option(help: str, **attributes: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--topic", "-t", "topics", metavar="TOPIC[:N,N]", multiple=True, help=help, **attributes)


@groups.command("list")
@format_option("How to print it.")
@cluster_options
def list_groups(as_json: bool, bootstrap: str, timeout: float) -> None:
    """Lists all groups.

    In a pipe: lines of id, type, protocol type, state, by tabs.
    """
    from kwire.client.groups import Groups

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            found = await Groups(client).list_all()
        if as_json:
            show_json([group._asdict() for group in found])
        else:
            show_table(["GROUP", "TYPE", "PROTOCOL", "STATE"], found)

    run_async(main)


@groups.command("describe")
@groups_argument
@click.option("--members", is_flag=True, help="A line for each member instead of each partition.")
@format_option("How to print it.")
@cluster_options
def describe(names: tuple[str, ...], members: bool, as_json: bool, bootstrap: str, timeout: float) -> None:
    """Shows offsets, lag and members.

    In a pipe: a line for each partition, by tabs: group, topic, partition,
    committed offset, end offset, lag, member, host, client id; with
    --members for each member: group, member, instance id, host, client id,
    partitions.
    """

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            described = [await _describe(client, name) for name in names]
        if as_json:
            show_json(described)
        else:
            for group in described:
                _show_group(group, members)

    run_async(main)


@groups.command("reset-offsets")
@group_argument
@topics_option("A topic, or these partitions of it; may be given several times.")
@click.option("--all-topics", is_flag=True, help="All topics for which the group has offsets.")
@click.option("--to-earliest", is_flag=True, help="To the first record there is.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-current", is_flag=True, help="To where it is; to the end where it has no offset.")
@click.option("--to-offset", type=OFFSET, metavar="N", help="To this offset.")
@click.option("--shift-by", type=DISTANCE, metavar="N", help="So far on, or back where N is negative.")
@click.option(
    "--to-datetime", metavar="TIME", help="To the first record of that time or later: ms, or like 2026-01-31T12:00."
)
@click.option("--by-duration", metavar="DURATION", help="The same, so long ago: P7D, PT12H, P1DT2H30M.")
@click.option("--dry-run/--execute", default=True, help="Only show what would be done, or do it.", show_default=True)
@format_option("How to print it.")
@cluster_options
def reset_offsets(
    group: str,
    topics: tuple[str, ...],
    all_topics: bool,
    dry_run: bool,
    as_json: bool,
    bootstrap: str,
    timeout: float,
    **places: Any,
) -> None:
    """Sets where a group without members goes on reading.

    Nothing changes without --execute. In a pipe: lines of group, topic,
    partition, old offset, new offset, by tabs.
    """
    from kwire.client.group_offsets import commit_offsets
    from kwire.client.groups import Groups

    if bool(topics) == all_topics:
        raise CommandError("say which topics: --topic TOPIC or --all-topics", MISUSED)
    reset = _read_reset(places)

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            rows = await _plan(client, group, topics, reset)
            if not dry_run:
                await commit_offsets(
                    Groups(client), group, {(row["topic"], row["partition"]): row["new"] for row in rows}
                )
        if as_json:
            show_json(rows)
        else:
            show_table(
                ["GROUP", "TOPIC", ">PARTITION", ">OLD", ">NEW"],
                [[group, row["topic"], row["partition"], row["old"], row["new"]] for row in rows],
            )

    run_async(main)


@groups.command("delete")
@groups_argument
@click.option("--if-exists", is_flag=True, help="A missing group is no error.")
@cluster_options
def delete(names: tuple[str, ...], if_exists: bool, bootstrap: str, timeout: float) -> None:
    """Deletes groups that have no members, with their offsets."""
    from kwire.client.groups import Groups
    from kwire.protocol.errors import ErrorCode

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            for name in names:
                with tolerating(ErrorCode.GROUP_ID_NOT_FOUND, when=if_exists):
                    await Groups(client).delete(name)

    run_async(main)


@groups.command("delete-offsets")
@group_argument
@topics_option("A topic, or these partitions of it; may be given several times.", required=True)
@cluster_options
def delete_group_offsets(group: str, topics: tuple[str, ...], bootstrap: str, timeout: float) -> None:
    """Deletes the offsets of topics that no member reads."""
    from kwire.client.group_offsets import delete_offsets
    from kwire.client.groups import Groups

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            await delete_offsets(Groups(client), group, await _partitions(client, topics))

    run_async(main)


def _read_reset(places: dict[str, Any]) -> Reset:
    """The one of the `--to-…` options that was given."""
    from time import time

    from kwire.cli.positions import parse_time
    from kwire.cli.resets import Reset, Where, parse_duration

    given = {name: value for name, value in places.items() if value is not None and value is not False}
    if len(given) != 1:
        raise CommandError(
            "say where to, once: --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime or "
            "--by-duration",
            MISUSED,
        )
    ((name, value),) = given.items()
    if name == "to_datetime":
        return Reset(Where.TIME, read_option("--to-datetime", value, parse_time))
    if name == "by_duration":
        ago = read_option("--by-duration", value, parse_duration)
        return Reset(Where.TIME, max(int(time() * 1000) - ago, 0))
    if name == "to_offset":
        return Reset(Where.OFFSET, value)
    if name == "shift_by":
        return Reset(Where.SHIFT, value)
    return Reset(Where[name.removeprefix("to_").upper()])


async def _plan(client: Client, group: str, topics: Sequence[str], reset: Reset) -> list[dict[str, Any]]:
    """The rows of a reset, by topic and partition. CommandError where the group has members, or no offsets."""
    from kwire.cli.resets import resolve_reset
    from kwire.client.group_offsets import committed_offsets
    from kwire.client.groups import Groups
    from kwire.protocol.errors import ErrorCode, KafkaError

    asked = Groups(client)
    try:
        description = await asked.describe(group)
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
    else:
        if description.active:
            raise CommandError(
                f"the offsets of group {group!r} can't be set while it has members; its state is {description.state}"
            )
    committed = await committed_offsets(asked, group)
    partitions = await _partitions(client, topics) if topics else list(committed)
    if not partitions:
        raise CommandError(f"group {group!r} has no offsets; name topics with --topic")
    targets = await resolve_reset(client, reset, partitions, committed)
    for (topic, number), target in targets.items():
        if target.wanted is not None:
            click.echo(
                f"kwire: {topic}-{number} has no offset {target.wanted}, {target.offset} is the nearest", err=True
            )
    return [
        {
            "topic": topic,
            "partition": number,
            "old": committed[topic, number].offset if (topic, number) in committed else None,
            "new": targets[topic, number].offset,
        }
        for topic, number in sorted(targets)
    ]


async def _partitions(client: Client, texts: Sequence[str]) -> list[TopicPartition]:
    """The partitions that `TOPIC` and `TOPIC:0,1` stand for."""
    import re

    from kwire.client.metadata import unknown_partition

    found: dict[TopicPartition, None] = {}
    for text in texts:
        name, colon, numbers = text.partition(":")
        if colon and not re.fullmatch("[0-9]{1,10}(,[0-9]{1,10})*", numbers):
            raise CommandError(f"--topic {text}: must be TOPIC or TOPIC:0,1,2", MISUSED)
        known = (await client.topic(name)).partitions
        for number in map(int, numbers.split(",")) if colon else known:
            if number not in known:
                raise unknown_partition(name, number)
            found[name, number] = None
    return list(found)


async def _describe(client: Client, name: str) -> dict[str, Any]:
    from kwire.client.group_offsets import committed_offsets
    from kwire.client.groups import Groups

    asked = Groups(client)
    group = await asked.describe(name)
    committed = await committed_offsets(asked, name)
    owners = {partition: member for member in group.members for partition in member.assignment}
    ends = await _ends(client, sorted({*committed, *owners}))
    offsets = []
    for partition, end in ends.items():
        topic, number = partition
        at = committed.get(partition)
        offsets.append(
            {
                "topic": topic,
                "partition": number,
                "offset": None if at is None else at.offset,
                "end_offset": end,
                "lag": None if at is None or end is None else end - at.offset,
                "metadata": None if at is None else at.metadata,
                "member": owners[partition].id if partition in owners else None,
            }
        )
    return {
        "group": group.id,
        "type": group.type,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "coordinator": group.coordinator,
        "members": [
            {
                "id": member.id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": [{"topic": topic, "partition": number} for topic, number in sorted(member.assignment)],
            }
            for member in sorted(group.members)
        ],
        "offsets": offsets,
    }


async def _ends(client: Client, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
    """The end offset of each partition; None where there is no such partition (any more)."""
    from kwire.client.offsets import LATEST, list_offsets

    if not partitions:
        return {}
    await client.refresh(sorted({topic for topic, _ in partitions}))
    topics = client.metadata.topics
    there = [(topic, number) for topic, number in partitions if topic in topics and number in topics[topic].partitions]
    listed = await list_offsets(client, dict.fromkeys(there, LATEST))
    return {partition: listed[partition].offset if partition in listed else None for partition in partitions}


def _show_group(group: dict[str, Any], members: bool) -> None:
    import sys

    if sys.stdout.isatty():
        print(
            f"Group {group['group']}  {group['type']}  {group['state']}  {group['protocol'] or 'no protocol'}  "
            f"coordinator {group['coordinator']}"
        )
    if members:
        columns = ["GROUP", "MEMBER", "INSTANCE", "HOST", "CLIENT", "PARTITIONS"]
        show_table(columns, [_member_row(group, member) for member in group["members"]])
        return
    by_id = {member["id"]: member for member in group["members"]}
    rows: list[list[Any]] = []
    for at in group["offsets"]:
        member = by_id.get(at["member"], _NOBODY)
        where = [at["topic"], at["partition"], at["offset"], at["end_offset"], at["lag"]]
        rows.append([group["group"], *where, at["member"], member["host"], member["client_id"]])
    for member in group["members"]:
        if not member["partitions"]:
            rows.append([group["group"], *[None] * 5, member["id"], member["host"], member["client_id"]])
    show_table(
        ["GROUP", "TOPIC", ">PARTITION", ">OFFSET", ">END", ">LAG", "MEMBER", "HOST", "CLIENT"],
        rows,
    )


_NOBODY: dict[str, Any] = {"host": None, "client_id": None}


def _member_row(group: dict[str, Any], member: dict[str, Any]) -> list[Any]:
    topics: dict[str, list[str]] = {}
    for assigned in member["partitions"]:
        topics.setdefault(assigned["topic"], []).append(str(assigned["partition"]))
    partitions = " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items())
    return [
        group["group"],
        member["id"],
        member["instance_id"],
        member["host"],
        member["client_id"],
        partitions,
    ]
