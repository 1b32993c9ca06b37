"""Apache Kafka from its jars: the class path of its tools and clients, and its broker as a peer of kwire's.

    with ApacheKafka() as peer:
        producer = KafkaProducer(bootstrap_servers=peer.bootstrap)

`ApacheKafka` has the same shape as `kwire.testing.process.BrokerProcess`: the same test or benchmark runs with either.
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from jvm import maven

POM = Path(__file__).with_name("apache-kafka.xml")
VERSION = maven.version(POM)
STOCK_JVM = (
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
"""What Kafka's own start script gives the JVM of its broker."""
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a JVM that lives for seconds: compile quickly, collect simply."""
SMALL_JVM = ("-Xms256m", "-Xmx512m", *SHORT_LIVED)
"""For a broker that a test has for a minute."""
TOOL_HEAP = ("-Xmx512m",)
"""For a stock tool, or a client."""
QUIET = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.logFile=System.err")
START_TIMEOUT = 60.0
"""Seconds; a start takes two to four, more where the machine is busy."""
STOP_TIMEOUT = 30.0
POLL = 0.02
"""Seconds between two attempts to connect while the broker starts: it says nowhere else that it serves."""


def class_path() -> str:
    """Every jar of Apache Kafka VERSION, as `java -cp` takes it."""
    return f"{maven.jars(POM)}/*"


def tool_command(main_class: str, *arguments: str, options: Sequence[str] = TOOL_HEAP) -> list[str]:
    """The command line that runs a stock tool, such as org.apache.kafka.tools.TopicCommand, in a JVM of its own.

    `options` are the JVM's.
    """
    return [maven.java_program("java"), *options, *QUIET, "-cp", class_path(), main_class, *arguments]


class ApacheKafka:
    """One KRaft broker and controller in one process, in a JVM with these `options`, by default the stock script's.

    `config` holds broker settings by Kafka's names, over the ones written here. Data go to `data_dir`, which stays,
    or else to a temporary folder, which `close` removes. The broker keeps its port over a kill and a new `start`.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        data_dir: Path | str | None = None,
        options: Sequence[str] = STOCK_JVM,
    ) -> None:
        self.config = dict(config or {})
        self._options = tuple(options)
        self._folder = Path(tempfile.mkdtemp(prefix="apache-kafka-"))
        self.data_dir = Path(data_dir) if data_dir is not None else self._folder / "data"
        self.log = self._folder / "broker.log"
        """What the broker wrote, over all its starts."""
        self.host = "127.0.0.1"
        self.port, self._controller_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """HOST:PORT, as clients take it in `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The id of the running process, or of the last one."""
        assert self._process is not None, "the broker was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, timeout: float = START_TIMEOUT) -> ApacheKafka:
        """Returns when the broker accepts connections; raises JavaError when it ends first or after `timeout`
        seconds."""
        self.format()
        with self.log.open("ab") as log:
            options = [*self._options, maven.scratch_option(self._folder)]
            command = tool_command("kafka.Kafka", str(self._properties_file()), options=options)
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment(), process_group=0
            )
        deadline = time.monotonic() + timeout
        while not _accepts(self.port):
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise maven.JavaError(f"Apache Kafka did not start:\n{self.log_tail()}")
            time.sleep(POLL)
        return self

    def format(self) -> None:
        """Prepares the data folder, as `start` does where nobody did: whoever measures a start calls this before."""
        if (self.data_dir / "meta.properties").exists():
            return
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        # One id in 64 begins with "-", which the tool would take for an option if it stood alone.
        arguments = ["format", "--standalone", f"--cluster-id={cluster_id}", "-c", str(self._properties_file())]
        done = subprocess.run(
            tool_command("kafka.tools.StorageTool", *arguments, options=(*TOOL_HEAP, *SHORT_LIVED)),
            capture_output=True,
            text=True,
            env=_environment(),
            check=False,
        )
        if done.returncode:
            raise maven.JavaError(f"Apache Kafka could not format {self.data_dir}:\n{done.stdout}{done.stderr}")

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Stops the broker cleanly (SIGTERM), or kills it when that takes longer than `timeout` seconds."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Ends the broker with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Stops the broker and removes its temporary folder, log included."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def log_tail(self, lines: int = 60) -> str:
        """The last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def _properties_file(self) -> Path:
        listeners = f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self._controller_port}"
        settings: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.data_dir,
            # One broker can hold one replica of the internal topics only.
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
        }
        file = self._folder / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in (settings | self.config).items()))
        return file

    def __enter__(self) -> ApacheKafka:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __str__(self) -> str:
        return self.bootstrap


def _environment() -> dict[str, str]:
    """This process's environment without what would change the JVM from outside."""
    return {
        key: value
        for key, value in os.environ.items()
        if key not in {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH"}
    }


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; held together while they are drawn, so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
