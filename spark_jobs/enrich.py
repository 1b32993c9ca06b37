"""Puts to the records of a topic what other topics know, and leaves out those that came before.

    python -m spark_jobs.enrich table flights flights-with-planes --table planes --on tailnum --as plane \\
        --schema "tailnum STRING, origin STRING, dest STRING" --table-schema "model STRING, seats INT" \\
        --checkpoint ./planes
    python -m spark_jobs.enrich stream flights flights-with-weather --with weather --on "origin = weather.origin" \\
        --schema "origin STRING, flight INT, time TIMESTAMP" --time time \\
        --with-schema "origin STRING, hour TIMESTAMP, temp DOUBLE" --with-time weather.hour \\
        --from "-59 minutes" --to "0 minutes" --watermark "1 day" --checkpoint ./weather
    python -m spark_jobs.enrich distinct flights flights-once --id carrier --id flight --id time --time time \\
        --schema "carrier STRING, flight INT, time TIMESTAMP" --watermark "2 days" --checkpoint ./once

Values are JSON, taken apart by a schema in SQL's words; records without a value are left out. Expressions are SQL over
the fields of the value and over `record`, a struct of the record's own key and value (both binary), headers, topic,
partition, offset and timestamp. Targets that are missing are created. `enrich COMMAND --help` says more.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click

from spark_jobs.command_line import paragraphs
from spark_jobs.enriching import distinct, stream, table


@click.group("enrich", help=paragraphs(__doc__), context_settings={"max_content_width": 120})
def main() -> None:
    pass


for module, name in ((table, "table"), (stream, "stream"), (distinct, "distinct")):
    main.add_command(module.main, name)

if __name__ == "__main__":
    main()
