"""What the command lines of all jobs have in common: brokers, Spark's settings, checkpoints, errors in one line.

@job("mirror", __doc__)
@click.argument("source")
@checkpoint
def main(run: Run, source: str, checkpoint: Path) -> None:
    run.cluster.demand(run.spark, source)
    ...

if __name__ == "__main__":
    main()
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

import click
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from spark_jobs.checkpoints import claim
from spark_jobs.faults import explained, quiet
from spark_jobs.session import open_session
from spark_jobs.topics import Cluster, Reading

Function = Callable[..., Any]


@dataclass(frozen=True)
class Run:
    """One run of a job."""

    name: str
    cluster: Cluster
    spark_settings: Mapping[str, str]

    @cached_property
    def spark(self) -> SparkSession:
        """Started when it is first asked for, so that a wrong command line does not wait for it."""
        return open_session(self.name, self.spark_settings)

    def start(
        self,
        writer: DataStreamWriter,
        checkpoint: Path,
        *,
        follow: bool,
        topics: Sequence[str] = (),
        to: Cluster | None = None,
        **meaning: Any,
    ) -> StreamingQuery:
        """Starts a query that ends when all that was there at its start is written, unless it follows.

        `topics` are those that it reads; `to` is the cluster that it writes to, if that may be another; `meaning`
        is what another checkpoint is needed for where it is changed, by the names that users know. Raises Fault where
        the checkpoint is for something else.
        """
        clusters = {"cluster": self.cluster.identity(self.spark)}
        if to is not None:
            clusters["target cluster"] = to.identity(self.spark)
        read = {topic: self.cluster.topic_id(self.spark, topic) for topic in topics}
        claim(checkpoint, self.name, read, meaning, clusters)
        writer = writer.option("checkpointLocation", str(checkpoint.resolve()))
        writer = writer.trigger(processingTime="1 second") if follow else writer.trigger(availableNow=True)
        return writer.start()


class Setting(click.ParamType):
    """KEY=VALUE."""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, content = value.partition("=")
        if not key or not equals:
            self.fail(f"{value!r} is not KEY=VALUE", param, context)
        return key, content


class Servers(click.ParamType):
    """HOST:PORT[,...], as Kafka's clients take it."""

    name = "HOST:PORT[,...]"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> str:
        given = [each.strip() for each in value.split(",")]
        if not any(given) or not all(re.fullmatch(r"(\S+:\d+)?", each) for each in given):
            self.fail(f"{value!r} is not HOST:PORT[,...]", param, context)
        return value


def paragraphs(text: str) -> str:
    """A docstring as click's help, with its lines as they are: it would fill up each paragraph, examples included."""
    return "\n\n".join(f"\b\n{paragraph}" for paragraph in text.strip().split("\n\n"))


def job(
    name: str, description: str, *, brokers: bool = True, spark: bool = True
) -> Callable[[Function], click.Command]:
    """Makes a click command of a function whose first argument is the Run.

    `brokers` says that it talks to some, `spark` that it needs one.
    """

    def decorate(function: Function) -> click.Command:
        @wraps(function)
        def command(
            spark: tuple[tuple[str, str], ...] = (),
            bootstrap_servers: str = "",
            kafka: tuple[tuple[str, str], ...] = (),
            **arguments: Any,
        ) -> None:
            run = Run(name, Cluster(bootstrap_servers, dict(kafka)), dict(spark))
            _guarded(run, lambda: function(run, **arguments))

        for option in reversed((*(_BROKERS if brokers else ()), *((_SPARK,) if spark else ()))):
            command = option(command)
        settings = {"show_default": True, "max_content_width": 120}
        return click.command(name, help=paragraphs(description), context_settings=settings)(command)

    return decorate


_BROKERS = (
    click.option(
        "--bootstrap-servers",
        "-b",
        default="localhost:9092",
        type=Servers(),
        envvar="KAFKA_BOOTSTRAP_SERVERS",
        help="Brokers to begin with.",
    ),
    click.option(
        "--kafka",
        type=Setting(),
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of Spark's Kafka clients, by Kafka's name; may be repeated.",
    ),
)
_SPARK = click.option(
    "--spark",
    type=Setting(),
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of Spark, such as spark.master=local[4]; may be repeated.",
)

checkpoint = click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Where the job keeps how far it is: started again with the same one, it goes on there.",
)
"""For jobs that can be resumed."""

follow = click.option("--follow", is_flag=True, help="Go on when all that was there has been read.")
"""For streams."""

_READING = (
    click.option(
        "--committed-only", is_flag=True, help="Without records of transactions that were aborted or are open."
    ),
    click.option("--allow-data-loss", is_flag=True, help="Go on where records were gone before they were read."),
    click.option(
        "--max-offsets-per-trigger",
        type=click.IntRange(min=1),
        metavar="N",
        help="Most records in a batch; all that there are unless given.",
    ),
)


def reads(function: Function) -> Function:
    """For streams that read topics: the function gets `reading`, a Reading."""

    @wraps(function)
    def command(
        run: Run, *, committed_only: bool, allow_data_loss: bool, max_offsets_per_trigger: int | None, **arguments: Any
    ) -> None:
        function(run, reading=Reading(max_offsets_per_trigger, committed_only, allow_data_loss), **arguments)

    for option in reversed(_READING):
        command = option(command)
    return command


def _guarded(run: Run, work: Callable[[], None]) -> None:
    """Ends the process with 1 and one line where the user can put right what is wrong."""
    # A notebook's session outlives the job. Which one is "active" is a matter of threads: a job may run in any.
    own = SparkContext._active_spark_context is None
    try:
        with quiet():
            work()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception as error:
        line = explained(error)
        if line is None:
            raise
        print(f"{run.name}: {line}", file=sys.stderr)
        raise SystemExit(1) from None
    finally:
        if own and "spark" in run.__dict__:
            run.spark.stop()
