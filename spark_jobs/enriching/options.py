"""Options that several commands of `enrich` have."""

from __future__ import annotations

import click

from spark_jobs.durations import Duration

schema = click.option("--schema", required=True, metavar="DDL", help="Of the source's values: 'id INT, name STRING'.")
select = click.option(
    "--select",
    metavar="SQL",
    help="What the value of the target holds: a list as after SELECT.  [default: all fields, and what was put to them]",
)
inner = click.option("--inner", is_flag=True, help="Leave out what has no match.")
watermark = click.option(
    "--watermark",
    type=Duration(),
    required=True,
    help="How far a record may lie behind the latest time seen; one that comes later than that may be left out.",
)
