"""Real frames between stock clients and Apache Kafka 4.3.1, without the length that stands before a frame.

Each line of the file is one request and its response, in hex.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import NamedTuple


class Exchange(NamedTuple):
    label: str
    api_key: int
    version: int
    request: bytes
    response: bytes


def _exchange(line: str) -> Exchange:
    item = json.loads(line)
    response = bytes.fromhex(item["resp"])
    assert len(response) == item["resp_len"], "this response was cut when it was captured"
    return Exchange(item["label"], item["api"], item["ver"], bytes.fromhex(item["req"]), response)


with gzip.open(Path(__file__).with_name("data") / "frames.jsonl.gz", "rt") as lines:
    EXCHANGES = [_exchange(line) for line in lines]
