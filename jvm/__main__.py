"""`python -m jvm kafka streams connect spark spark-4.2 s3 tiered`: resolves the jars of each, prints their folder."""

from __future__ import annotations

import sys

from jvm import apache_kafka, kafka_connect, kafka_streams, kafka_tiered, maven, s3proxy, spark

POMS = {
    "kafka": apache_kafka.POM,
    "streams": kafka_streams.POM,
    "connect": kafka_connect.POM,
    "spark": spark.POM_4_0,
    "spark-4.2": spark.POM_4_2,
    "s3": s3proxy.POM,
    "tiered": kafka_tiered.POM,
}


def main(names: list[str]) -> int:
    """Returns the exit code."""
    if not names or not set(names) <= set(POMS):
        print(f"usage: python -m jvm {'|'.join(POMS)} ...", file=sys.stderr)
        return 2
    try:
        for name in names:
            print(f"{name}: {maven.jars(POMS[name])}")
    except maven.JavaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
