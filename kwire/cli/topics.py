"""`kwire topics`: create, list, describe, alter and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kwire.cli.app import new_typer
from kwire.cli.options import DEFAULT_BOOTSTRAP, DEFAULT_TIMEOUT, Bootstrap, Timeout, key_values, open_client
from kwire.cli.output import Format, show_json, show_table
from kwire.cli.running import MISUSED, CommandError, run_async

if TYPE_CHECKING:
    from kwire.client.client import Client
    from kwire.client.metadata import Topic

topics = new_typer(no_args_is_help=True, help="Create, list, describe, alter and delete topics.")

Names = Annotated[list[str], typer.Argument(metavar="TOPIC", help="Names of topics.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.", show_default=False)]
Config = Annotated[
    list[str], typer.Option("--config", "-c", metavar="KEY=VALUE", help="A topic config; may be given several times.")
]
ResultFormat = Annotated[Format, typer.Option("--format", help="How to print it.")]


@topics.command()
def create(
    names: Names,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", min=1, metavar="N", help="How many.", show_default="as the broker has it"),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor", "-r", min=1, metavar="N", help="Replicas.", show_default="as the broker has it"
        ),
    ] = None,
    assignment: Annotated[
        str | None,
        typer.Option(
            metavar="ID:ID,ID:ID",
            help="Brokers of each partition, its preferred leader first.",
            show_default=False,
        ),
    ] = None,
    config: Config = [],  # noqa: B006  (Typer's way to say "none")
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="An existing topic is no error.")] = False,
    validate_only: Annotated[bool, typer.Option("--validate-only", help="Only check whether it can be done.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Creates topics."""
    from kwire.client.admin import BROKER_DEFAULT, Admin
    from kwire.protocol.errors import ErrorCode, KafkaError

    if assignment is not None and (partitions is not None or replication_factor is not None):
        raise CommandError("--assignment already says how many partitions and replicas there are", MISUSED)
    configs = key_values(config, "--config")
    replicas = None if assignment is None else _parse_assignment(assignment)

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            for name in names:
                try:
                    await Admin(client).create_topic(
                        name,
                        partitions=partitions or BROKER_DEFAULT,
                        replication_factor=replication_factor or BROKER_DEFAULT,
                        assignment=replicas,
                        configs=configs,
                        validate_only=validate_only,
                    )
                except KafkaError as error:
                    if not (if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS):
                        raise

    run_async(main)


@topics.command("list")
def list_topics(
    exclude_internal: Annotated[
        bool, typer.Option("--exclude-internal", help="Leave out topics like __consumer_offsets.")
    ] = False,
    format: ResultFormat = Format.TEXT,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Lists all topics.

    In a pipe: lines of name, partitions, replication factor, by tabs.
    """
    from kwire.client.admin import Admin

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            found = [
                topic for topic in (await Admin(client).topics()).values() if not (exclude_internal and topic.internal)
            ]
        if format is Format.JSON:
            show_json([_summary(topic) for topic in found])
        else:
            show_table(
                ["TOPIC", ">PARTITIONS", ">REPLICAS"],
                [[topic.name, len(topic.partitions), _replication_factor(topic)] for topic in found],
            )

    run_async(main)


@topics.command()
def describe(
    names: Names,
    offsets: Annotated[bool, typer.Option("--offsets", help="Also first and end offsets.")] = False,
    all_configs: Annotated[bool, typer.Option("--all-configs", help="Also configs that have their default.")] = False,
    format: ResultFormat = Format.TEXT,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Shows partitions, leaders and configs.

    In a pipe: a line for each partition, by tabs; configs only as JSON.
    """

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            described = [await _describe(client, name, offsets, all_configs) for name in names]
        if format is Format.JSON:
            show_json(described)
        else:
            for topic in described:
                _show_topic(topic, offsets)

    run_async(main)


@topics.command()
def alter(
    name: Name,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, metavar="N", help="Add partitions up to this number.")
    ] = None,
    config: Config = [],  # noqa: B006
    delete_config: Annotated[
        list[str],
        typer.Option("--delete-config", metavar="KEY", help="A config to set back to its default; may be repeated."),
    ] = [],  # noqa: B006
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
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


@topics.command()
def delete(
    names: Names,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A missing topic is no error.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Deletes topics with all their records."""
    from kwire.client.admin import Admin
    from kwire.protocol.errors import ErrorCode, KafkaError

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            for name in names:
                try:
                    await Admin(client).delete_topics([name])
                except KafkaError as error:
                    if not (if_exists and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                        raise

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
    try:
        return [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError:
        raise CommandError(f"--assignment {text}: must be broker ids like 1:2,2:3", MISUSED) from None
