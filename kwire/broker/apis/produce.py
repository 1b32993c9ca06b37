"""Produce (key 0): appends record batches to partitions.

v3 is the first with record batches of magic 2, v8 names the records refused (KIP-467), v10 the new leader with the
error (KIP-951), v11 and v12 belong to transactions (KIP-890), v13 asks by topic id. An old librdkafka wants v0 listed
to believe in compression; below v3 the request is refused all the same, as in Apache Kafka.
"""

from __future__ import annotations

from kwire.broker import produce_templates
from kwire.broker.produce_outcomes import all_refused
from kwire.broker.producing import produce

templates = produce_templates
"""For requests that come again with other records."""

handle = produce
failed = all_refused
