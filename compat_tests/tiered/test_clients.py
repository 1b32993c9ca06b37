"""Stock clients read what lies in remote storage as they read any topic."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.tiered.tier import (
    TIMEOUT,
    consume,
    create,
    in_directory,
    produce,
    settings,
    until_tiered,
)
from jvm.s3proxy import S3Proxy
from kwire.testing.process import BrokerProcess
from tests.remote.s3 import s3_settings

RECORDS = 6000


@pytest.fixture(params=["directory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The settings of an object store."""
    if request.param == "directory":
        return in_directory(tmp_path / "remote")
    server: S3Proxy = request.getfixturevalue("s3_server")
    return s3_settings(server, request.getfixturevalue("s3_bucket"))


def some_values(count: int = RECORDS) -> list[bytes]:
    draw = random.Random(7)
    return [b"%06d" % number + draw.randbytes(1000) for number in range(count)]


def test_everything_is_read_in_order_also_after_a_restart(storage: dict[str, str]) -> None:
    values = some_values()
    expected = list(enumerate(values))
    with BrokerProcess(settings(storage)) as broker:
        create(broker, "t")
        produce(broker, "t", values)
        until_tiered(broker, "t")
        assert consume(broker, "t") == expected
        assert consume(broker, "t", RECORDS // 3) == expected[RECORDS // 3 :]
        broker.restart()
        assert consume(broker, "t") == expected


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed_topics(codec: str, tmp_path: Path) -> None:
    values = [b"%06d" % number * 300 for number in range(3000)]
    with BrokerProcess(settings(in_directory(tmp_path / "remote"))) as broker:
        create(broker, "t", internal_segment_bytes="20000", local_retention_bytes="20000")
        produce(broker, "t", values, **{"compression.type": codec, "batch.num.messages": 100})
        until_tiered(broker, "t")
        assert consume(broker, "t") == list(enumerate(values))


def test_aborted_transactions_stay_unread(tmp_path: Path) -> None:
    with BrokerProcess(settings(in_directory(tmp_path / "remote"))) as broker:
        create(broker, "t", internal_segment_bytes="100000", local_retention_bytes="100000")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "x"})
        producer.init_transactions(TIMEOUT)
        committed = []
        for number in range(60):
            producer.begin_transaction()
            for part in range(40):
                value = b"%d %d " % (number, part) + bytes(300)
                producer.produce("t", value, partition=0)
                if number % 3:
                    committed.append(value)
            if number % 3:
                producer.commit_transaction(TIMEOUT)
            else:
                producer.flush(TIMEOUT)
                producer.abort_transaction(TIMEOUT)
        until_tiered(broker, "t")
        assert [value for _, value in consume(broker, "t")] == committed
        everything = consume(broker, "t", **{"isolation.level": "read_uncommitted"})
        assert len(everything) == 60 * 40
