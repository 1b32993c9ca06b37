"""The life of `kwire serve`: how it starts, what it refuses, how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from compat_tests import cases
from compat_tests.aiokafka.driver import AiokafkaAdmin
from compat_tests.confluent.driver import ConfluentAdmin, ConfluentDriver
from compat_tests.driver import Admin, Bounds
from compat_tests.kafka_python.driver import KafkaPythonAdmin
from compat_tests.wire.raw import FETCH, connected, fetch_body, fetched_records, frame, request
from kwire.testing.process import BrokerError, BrokerProcess

Factory = Callable[..., BrokerProcess]
STOP_WITHIN_S = 5
SEGMENT_BYTES = "log.segment.bytes"


@pytest.fixture(autouse=True)
def own_brokers(kwire_broker_factory: Factory) -> Factory:
    return kwire_broker_factory


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def serve(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs `kwire serve` where it is expected to end by itself."""
    command = [sys.executable, "-m", "kwire", "serve", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def assert_one_line(errors: str, *words: str) -> None:
    lines = errors.strip().splitlines()
    assert len(lines) == 1
    for word in words:
        assert word in lines[0]


@pytest.fixture
def hangup() -> Iterator[Callable[[signal.Handlers], None]]:
    """Has the brokers that are started from now on begin with this disposition of SIGHUP."""
    before = signal.getsignal(signal.SIGHUP)
    yield lambda disposition: signal.signal(signal.SIGHUP, disposition) and None
    signal.signal(signal.SIGHUP, before)


def test_it_goes_on_where_a_hangup_is_ignored(own_brokers: Factory, hangup: Callable[[signal.Handlers], None]) -> None:
    """As nohup has it."""
    hangup(signal.SIG_IGN)
    broker = own_brokers()
    os.kill(broker.pid, signal.SIGHUP)
    with connected(broker) as connection:
        assert connection.api_versions().error == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_after_waiting_fetches_are_answered(
    own_brokers: Factory, hangup: Callable[[signal.Handlers], None], number: signal.Signals
) -> None:
    hangup(signal.SIG_DFL)
    broker = own_brokers()
    ConfluentAdmin(broker.bootstrap).create_topic("quiet")
    with connected(broker) as waiting, connected(broker) as other:
        waiting.send(frame(request(FETCH, 4, fetch_body("quiet", max_wait_ms=60_000, min_bytes=1_000_000), 5)))
        for _ in range(20):
            other.api_versions()
        assert not waiting.has_answer()
        os.kill(broker.pid, number)

        answer = waiting.receive()
        assert answer.correlation_id == 5
        assert fetched_records(answer.body) == (0, b"")
        assert waiting.is_closed()
        assert other.is_closed()
    broker.wait(timeout=STOP_WITHIN_S)
    assert broker.exit_code == 0


def test_records_and_deletions_survive_a_stop(own_brokers: Factory) -> None:
    broker = own_brokers()
    driver = ConfluentDriver(broker.bootstrap)
    sent = cases.numbered(10)
    driver.produce("kept", sent)
    ConfluentAdmin(broker.bootstrap).delete_records("kept", 4)
    broker.restart()

    assert driver.bounds("kept") == Bounds(4, 10)
    assert [record.value for record in driver.consume("kept", 6, start=4)] == [record.value for record in sent[4:]]


def test_it_prints_one_line_when_it_is_ready(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kwire", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            host, _, port = line.removeprefix("kwire ready on ").strip().rpartition(":")
            assert host == "127.0.0.1"
            socket.create_connection((host, int(port))).close()
            process.terminate()
            assert process.stdout.read() == ""
            assert process.wait(STOP_WITHIN_S) == 0
        finally:
            process.kill()


def test_a_second_broker_on_the_same_directory_is_refused(own_brokers: Factory) -> None:
    first = own_brokers()
    second = serve("--listen", "127.0.0.1:0", "--data-dir", first.data_dir)

    assert second.returncode != 0
    assert second.stdout == ""
    assert_one_line(second.stderr, str(first.data_dir))
    with connected(first) as connection:
        assert connection.api_versions().error == 0


def test_a_taken_port_is_refused(own_brokers: Factory, tmp_path: Path) -> None:
    first = own_brokers()
    second = serve("--listen", first.bootstrap, "--data-dir", tmp_path)

    assert second.returncode != 0
    assert_one_line(second.stderr, str(first.port))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "num.partitions=several"], ["num.partitions", "several"]),
        (["--set", "num.partitions=0"], ["num.partitions", "0"]),
        (["--set", "num.partitions"], ["num.partitions"]),
        (["--listen", "nowhere"], ["nowhere"]),
        (["--set", "listeners=A://localhost:0"], ["listener.security.protocol.map", "A"]),
        (["--set", "advertised.listeners=PLAINTEXT://0.0.0.0:9092"], ["advertised.listeners", "PLAINTEXT"]),
        (["/no/such/server.properties"], ["/no/such/server.properties"]),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: Sequence[str], words: Sequence[str], tmp_path: Path) -> None:
    listen = [] if "listen" in "".join(arguments[:2]) else ["--listen", "127.0.0.1:0"]
    done = serve("--data-dir", tmp_path / "data", *listen, *arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert_one_line(done.stderr, *words)


def test_an_unknown_key_is_a_warning(own_brokers: Factory) -> None:
    broker = own_brokers({"no.such.key": "1"}, arguments=["--log-level", "warning"])

    assert "no.such.key" in broker.log.read_text()


@pytest.mark.parametrize(
    ("in_file", "in_environment", "in_flag", "expected"),
    [
        (None, None, None, "1073741824"),
        ("2000000", None, None, "2000000"),
        ("2000000", "3000000", None, "3000000"),
        ("2000000", None, "4000000", "4000000"),
        (None, "3000000", "4000000", "4000000"),
        ("2000000", "3000000", "4000000", "4000000"),
    ],
)
def test_precedence_of_settings(
    own_brokers: Factory,
    tmp_path: Path,
    in_file: str | None,
    in_environment: str | None,
    in_flag: str | None,
    expected: str,
) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(f"# a comment\n{SEGMENT_BYTES} = {in_file}\n" if in_file else "\n")
    broker = own_brokers(
        {SEGMENT_BYTES: in_flag} if in_flag else {},
        environment={"KWIRE_LOG_SEGMENT_BYTES": in_environment} if in_environment else {},
        arguments=[str(properties)],
    )

    admin = ConfluentAdmin(broker.bootstrap)
    ((broker_id, _, _),) = admin.brokers()
    assert admin.broker_configs(str(broker_id))[SEGMENT_BYTES].value == expected


def test_each_client_is_told_the_address_of_its_listener(own_brokers: Factory) -> None:
    inside, outside = free_ports(2)
    own_brokers(
        {
            "listeners": f"INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside}",
            "advertised.listeners": f"INSIDE://127.0.0.1:{inside},OUTSIDE://localhost:{outside}",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
        }
    )

    clients: list[Callable[[str], Admin]] = [KafkaPythonAdmin, ConfluentAdmin, AiokafkaAdmin]
    for client in clients:
        assert {(host, port) for _, host, port in client(f"127.0.0.1:{inside}").brokers()} == {("127.0.0.1", inside)}
        assert {(host, port) for _, host, port in client(f"127.0.0.1:{outside}").brokers()} == {("localhost", outside)}
    ConfluentDriver(f"127.0.0.1:{inside}").produce("shared", cases.numbered(3))
    assert len(ConfluentDriver(f"127.0.0.1:{outside}").consume("shared", 3)) == 3


def test_several_data_directories(own_brokers: Factory, tmp_path: Path) -> None:
    second = tmp_path / "second"
    broker = own_brokers(arguments=["--data-dir", str(second)])
    ConfluentAdmin(broker.bootstrap).create_topic("spread", partitions=4)

    for folder in (broker.data_dir, second):
        assert len(list(folder.glob("spread-*"))) == 2
        assert (folder / "meta.properties").exists()


def test_a_broker_that_cannot_start_says_why_to_the_fixture(own_brokers: Factory) -> None:
    with pytest.raises(BrokerError, match=r"num\.partitions"):
        own_brokers({"num.partitions": "several"})
