"""`kwire topics`: create, list, describe, alter and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kwire.cli.commands import Argument, Group
from kwire.cli.options import (
    COUNT,
    REPLICAS,
    cluster_options,
    format_option,
    key_values,
    open_client,
    tolerating,
)
from kwire.cli.output import show_json, show_table
from kwire.cli.running import MISUSED, CommandError, run_async

if TYPE_CHECKING:
    from kwire.client.client import Client
    from kwire.client.metadata import Topic

topics = Group("topics", no_args_is_help=True, help="Create, list, describe, alter and delete topics.")

config_option = click.option(
    "--config", "-c", metavar="KEY=VALUE", multiple=True, help="A topic config; may be given several times."
)

names_argument = click.argument(
    "names", cls=Argument, metavar="TOPIC", description="Names of topics.", nargs=-1, required=True
)


@topics.command("create")
@names_argument
@click.option(
    "--partitions",
    "-p",
    type=COUNT,
    metavar="N",
    show_default="as the broker has it",
    help="How many.",
)
@click.option(
    "--replication-factor",
    "-r",
    type=REPLICAS,
    metavar="N",
    show_default="as the broker has it",
    help="Replicas.",
)
@click.option("--assignment", metavar="ID:ID,ID:ID", help="Brokers of each partition, its preferred leader first.")
@config_option
@click.option("--if-not-exists", is_flag=True, help="An existing topic is no error.")
@click.option("--validate-only", is_flag=True, help="Only check whether it can be done.")
@cluster_options
def create(
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    assignment: str | None,
    config: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
    bootstrap: str,
    timeout: float,
) -> None:
    """Creates topics."""
    from kwire.client.admin import BROKER_DEFAULT, Admin
    from kwire.protocol.errors import ErrorCode

    if assignment is not None and (partitions is not None or replication_factor is not None):
        raise CommandError("--assignment already says how many partitions and replicas there are", MISUSED)
    configs = key_values(config, "--config")
    replicas = None if assignment is None else _parse_assignment(assignment)

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            for name in names:
                with tolerating(ErrorCode.TOPIC_ALREADY_EXISTS, when=if_not_exists):
                    await Admin(client).create_topic(
                        name,
                        partitions=partitions or BROKER_DEFAULT,
                        replication_factor=replication_factor or BROKER_DEFAULT,
                        assignment=replicas,
                        configs=configs,
                        validate_only=validate_only,
                    )

    run_async(main)


@topics.command("list")
@click.option("--exclude-internal", is_flag=True, help="Leave out topics like __consumer_offsets.")
@format_option("How to print it.")
@cluster_options
def list_topics(exclude_internal: bool, as_json: bool, bootstrap: str, timeout: float) -> None:
    """Lists all topics.

    In a pipe: lines of name, partitions, replication factor, by tabs.
    """
    from kwire.client.admin import Admin

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            found = [
                topic for topic in (await Admin(client).topics()).values() if not (exclude_internal and topic.internal)
            ]
        if as_json:
            show_json([_summary(topic) for topic in found])
        else:
            show_table(
                ["TOPIC", ">PARTITIONS", ">REPLICAS"],
                [[topic.name, len(topic.partitions), _replication_factor(topic)] for topic in found],
            )

    run_async(main)


@topics.command("describe")
@names_argument
@click.option("--offsets", is_flag=True, help="Also first and end offsets.")
@click.option("--all-configs", is_flag=True, help="Also configs that have their default.")
@format_option("How to print it.")
@cluster_options
def describe(
    names: tuple[str, ...], offsets: bool, all_configs: bool, as_json: bool, bootstrap: str, timeout: float
) -> None:
    """Shows partitions, leaders and configs.

    In a pipe: a line for each partition, by tabs; configs only as JSON.
    """

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            described = [await _describe(client, name, offsets, all_configs) for name in names]
        if as_json:
            show_json(described)
        else:
            for topic in described:
                _show_topic(topic, offsets)

    run_async(main)


@topics.command("alter")
@click.argument("name", cls=Argument, metavar="TOPIC", description="Name of the topic.")
@click.option(
    "--partitions",
    "-p",
    type=COUNT,
    metavar="N",
    help="Add partitions up to this number.",
)
@config_option
@click.option(
    "--delete-config", metavar="KEY", multiple=True, help="A config to set back to its default; may be repeated."
)
@cluster_options
def alter(
    name: str,
    partitions: int | None,
    config: tuple[str, ...],
    delete_config: tuple[str, ...],
    bootstrap: str,
    timeout: float,
) -> None:
    """Adds partitions to a topic, or changes its configs."""
    from kwire.client.admin import Admin, ResourceType

    configs = key_values(config, "--config")
    if partitions is None and not configs and not delete_config:
        raise CommandError("nothing to alter: give --partitions, --config or --delete-config", MISUSED)

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            admin = Admin(client)
            if configs or delete_config:
                await admin.alter_configs(ResourceType.TOPIC, name, set=configs, delete=delete_config)
            if partitions is not None:
                await admin.create_partitions(name, partitions)

    run_async(main)


@topics.command("delete")
@names_argument
@click.option("--if-exists", is_flag=True, help="A missing topic is no error.")
@cluster_options
def delete(names: tuple[str, ...], if_exists: bool, bootstrap: str, timeout: float) -> None:
    """Deletes topics with all their records."""
    from kwire.client.admin import Admin
    from kwire.protocol.errors import ErrorCode

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            for name in names:
                with tolerating(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, when=if_exists):
                    await Admin(client).delete_topics([name])

    run_async(main)


async def _describe(client: Client, name: str, offsets: bool, all_configs: bool) -> dict[str, Any]:
    from kwire.client.admin import Admin, ConfigSource, ResourceType
    from kwire.client.offsets import EARLIEST, LATEST, list_offsets

    topic = await client.topic(name)
    entries = await Admin(client).describe_configs(ResourceType.TOPIC, name)
    described: dict[str, Any] = _summary(topic)
    described["configs"] = {
        entry.name: entry.value for entry in entries if all_configs or entry.source is ConfigSource.TOPIC
    }
    details: list[dict[str, Any]] = [
        {
            "partition": partition.index,
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "replicas": partition.replicas,
            "isr": partition.isr,
            "offline": partition.offline,
        }
        for partition in topic.partitions.values()
    ]
    if offsets:
        wanted = [(name, number) for number in topic.partitions]
        starts = await list_offsets(client, dict.fromkeys(wanted, EARLIEST))
        ends = await list_offsets(client, dict.fromkeys(wanted, LATEST))
        for detail in details:
            where = name, detail["partition"]
            detail["start_offset"], detail["end_offset"] = starts[where].offset, ends[where].offset
    described["partition_details"] = details
    return described


def _summary(topic: Topic) -> dict[str, Any]:
    from kwire.protocol.uuids import ZERO, to_text

    return {
        "name": topic.name,
        "id": None if topic.id == ZERO else to_text(topic.id),
        "internal": topic.internal,
        "partitions": len(topic.partitions),
        "replication_factor": _replication_factor(topic),
    }


def _replication_factor(topic: Topic) -> int:
    return max((len(partition.replicas) for partition in topic.partitions.values()), default=0)


def _show_topic(topic: dict[str, Any], offsets: bool) -> None:
    import sys

    if sys.stdout.isatty():
        print(f"Topic {topic['name']}  id {topic['id'] or 'none'}{'  internal' if topic['internal'] else ''}")
        for key, value in topic["configs"].items():
            print(f"  {key}={value if value is not None else '(secret)'}")
    columns = ["TOPIC", ">PARTITION", ">LEADER", "REPLICAS", "ISR"]
    if offsets:
        columns += [">START", ">END"]
    rows = []
    for detail in topic["partition_details"]:
        row: list[Any] = [
            topic["name"],
            detail["partition"],
            detail["leader"],
            _ids(detail["replicas"]),
            _ids(detail["isr"]),
        ]
        rows.append([*row, detail["start_offset"], detail["end_offset"]] if offsets else row)
    show_table(columns, rows)


def _ids(brokers: list[int]) -> str:
    return ",".join(map(str, brokers))


def _parse_assignment(text: str) -> list[list[int]]:
    import re

    if not re.fullmatch(r"[0-9]{1,9}(?:[:,][0-9]{1,9})*", text):
        raise CommandError(f"--assignment {text}: must be broker ids like 1:2,2:3", MISUSED)
    return [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
