"""Whatever bytes come, only the connection they came by notices."""

from __future__ import annotations

import gzip
import json
import logging
import random
from pathlib import Path
from struct import pack

import pytest
import trio

from kwire.broker.registry import APIS
from kwire.protocol.messages.metadata import MetadataRequest
from tests.broker.scene import HOST, PORT, running

FRAMES = Path(__file__).parents[1] / "protocol" / "data" / "frames.jsonl.gz"
MUTATIONS = 12
"""Of each captured request."""


def captured() -> dict[str, list[bytes]]:
    """Requests that real clients sent, by the API that kwire offers."""
    names = {int(api.key): api.module for api in APIS}
    found: dict[str, list[bytes]] = {name: [] for name in names.values()}
    with gzip.open(FRAMES, "rt") as lines:
        for line in lines:
            frame = json.loads(line)
            if frame["api"] in names:
                found[names[frame["api"]]].append(bytes.fromhex(frame["req"]))
    return found


REQUESTS = captured()


def mutated(frame: bytes, chance: random.Random) -> bytes:
    """The frame with a few bytes changed, inserted, dropped or replaced by extreme numbers, behind an intact header."""
    data = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        position = chance.randrange(min(8, len(data)), len(data) + 1)
        match chance.randrange(5):
            case 0 if position < len(data):
                data[position] = chance.randrange(256)
            case 1:
                data[position:position] = chance.randbytes(chance.randint(1, 9))
            case 2:
                del data[position : position + chance.randint(1, 9)]
            case 3:
                extreme = chance.choice([pack(">i", -1), pack(">i", 2**31 - 1), pack(">q", -(2**63)), b"\xff" * 5])
                data[position : position + len(extreme)] = extreme
            case _:
                del data[position:]
    return bytes(data)


def test_nearly_every_api_was_seen_on_the_wire() -> None:
    assert [api for api, frames in REQUESTS.items() if not frames] == ["alter_replica_log_dirs", "describe_log_dirs"]


@pytest.mark.parametrize("api", sorted(api for api, frames in REQUESTS.items() if frames))
async def test_mutated_requests_harm_nobody_else(api: str, autojump_clock, caplog) -> None:
    chance = random.Random(f"{api} 1")
    async with running() as scene:
        await scene.create("topic")
        for frame in REQUESTS[api]:
            for _ in range(MUTATIONS):
                sent = mutated(frame, chance)
                stream = await scene.network.transport("attacker").connect(HOST, PORT)
                await stream.send([pack(">i", len(sent)) + sent])
                with trio.move_on_after(100_000):  # virtual seconds: a fetch may ask for days
                    await stream.receive(1_000_000)
                stream.close()
        with trio.fail_after(60):
            response = await scene.call(MetadataRequest(topics=None))
    assert "topic" in {topic.name for topic in response.topics} or api == "delete_topics"
    faults = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not faults, faults[0].getMessage()
