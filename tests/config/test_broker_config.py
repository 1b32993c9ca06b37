"""What a broker starts with: where values come from, what goes before what, what is refused and warned of."""

from __future__ import annotations

import pytest

from kwire.config.broker import BrokerConfig, load
from kwire.config.checks import connection_overrides
from kwire.config.errors import ConfigError
from kwire.config.keys import BROKER_KEYS
from kwire.ports.memory_files import MemoryFileSystem

STOCK_FILE = """
# the settings of the server.properties that Apache Kafka comes with
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def files_with(text: str | bytes) -> MemoryFileSystem:
    files = MemoryFileSystem()
    files.write_atomically("server.properties", text if isinstance(text, bytes) else text.encode())
    return files


def load_text(text: str | bytes, environment: dict[str, str] | None = None, flags: dict[str, str] | None = None):
    return load("server.properties", environment or {}, flags or {}, files=files_with(text))


def test_defaults() -> None:
    config = load()
    assert {name: config[name] for name in BROKER_KEYS if name not in ("broker.id",)} == {
        name: key.default for name, key in BROKER_KEYS.items() if name not in ("broker.id",)
    }
    assert config.broker_id == 1
    assert config.log_dirs == ("./kwire-data",)
    assert config.warnings == ()


def test_precedence_is_flag_environment_file_default() -> None:
    file = "num.partitions=2\ndefault.replication.factor=2\nmessage.max.bytes=2"
    environment = {"KWIRE_DEFAULT_REPLICATION_FACTOR": "3", "KWIRE_MESSAGE_MAX_BYTES": "3", "HOME": "/", "PATH": "x"}
    config = load_text(file, environment, {"message.max.bytes": "4"})
    assert config["num.partitions"] == 2
    assert config["default.replication.factor"] == 3
    assert config["message.max.bytes"] == 4
    assert config["min.insync.replicas"] == 1
    assert config.warnings == ()


def test_hours_from_a_flag_go_before_milliseconds_from_a_file() -> None:
    config = load_text("log.retention.ms=5\nlog.roll.ms=5", flags={"log.retention.hours": "1"})
    assert (config["log.retention.ms"], config["log.retention.hours"]) == (None, 1)
    assert config["log.roll.ms"] == 5
    same_file = load_text("log.retention.ms=5\nlog.retention.hours=1")
    assert same_file["log.retention.ms"] == 5


def test_the_file_that_apache_kafka_comes_with_is_read_as_it_is() -> None:
    config = load_text(STOCK_FILE)
    assert config["listeners"] == ("PLAINTEXT://:9092",)
    assert config["advertised.listeners"] == ("PLAINTEXT://localhost:9092",)
    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert config.warnings == (
        "no effect, kwire has no KRaft: controller.listener.names, controller.quorum.bootstrap.servers, process.roles",
        "no effect, kwire has nothing to tune there: num.io.threads, num.network.threads",
    )


def test_unknown_keys_are_a_warning() -> None:
    config = load_text("log.retension.ms=5\nzookeeper.connect=x:1", {"KWIRE_NO_SUCH_KEY": "1"})
    assert config.warnings == ("unknown configuration: log.retension.ms, no.such.key, zookeeper.connect",)
    with pytest.raises(KeyError):
        config["log.retension.ms"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num.partitions=x", "Invalid value x for configuration num.partitions: Not a number of type INT"),
        (
            "max.connection.creation.rate=2",
            "Invalid value 2 for configuration max.connection.creation.rate: "
            "this version of kwire supports only its default, '2147483647'",
        ),
        (
            "log.cleaner.dedupe.buffer.size=3145730\nlog.cleaner.threads=3",
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
        (
            "log.cleaner.io.buffer.load.factor=0.000000001",
            "offset map is too small to fit in even a single message, so log cleaning will never make progress. You "
            "can increase log.cleaner.dedupe.buffer.size or decrease log.cleaner.threads",
        ),
        (
            "authorizer.class.name=x.Y",
            "Invalid value x.Y for configuration authorizer.class.name: "
            "this version of kwire supports only its default, ''",
        ),
        (
            "ssl.keystore.password=abc",
            "Invalid value [hidden] for configuration ssl.keystore.password: "
            "this version of kwire supports only it unset",
        ),
        (
            "listener.name.plaintext.max.connections=5",
            "listener.name.plaintext.max.connections is set, "
            "but this version of kwire has no configuration for single listeners",
        ),
        ("log.roll.ms=0", "log.roll.ms must be greater than or equal to 1"),
        ("log.roll.jitter.ms=-1", "log.roll.jitter.ms must be greater than or equal to 0"),
        ("log.retention.minutes=0", "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        ("broker.id=-2", "broker.id must be -1 (as node.id) or at least 0"),
        ("broker.id=2\nnode.id=3", "broker.id and node.id must have the same value where both are set"),
        (
            "queued.max.request.bytes=5",
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        ),
        (
            "replica.fetch.wait.max.ms=40000",
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms",
        ),
        (
            "replica.lag.time.max.ms=100",
            "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms",
        ),
        (
            "group.consumer.session.timeout.ms=1000",
            "group.consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            "group.consumer.max.heartbeat.interval.ms=1000",
            "group.consumer.max.heartbeat.interval.ms must be greater than or equal to "
            "group.consumer.min.heartbeat.interval.ms",
        ),
        (
            "group.consumer.assignment.interval.ms=20000",
            "group.consumer.assignment.interval.ms must be less than or equal to "
            "group.consumer.max.assignment.interval.ms",
        ),
        (
            "group.consumer.heartbeat.interval.ms=45000\ngroup.consumer.max.heartbeat.interval.ms=45000",
            "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
        ),
        ("group.consumer.assignors=uniform,sticky", "Class sticky cannot be found"),
        ("offsets.topic.compression.codec=5", "Unknown compression type id: 5"),
        (
            "group.coordinator.rebalance.protocols=classic,share",
            "group.coordinator.rebalance.protocols must be without share: this version of kwire has no share groups",
        ),
        (
            "max.connections.per.ip=0",
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
        ),
        (
            "max.connections.per.ip.overrides=x",
            "Invalid value x for configuration max.connections.per.ip.overrides: not in the form host:count",
        ),
        (
            "max.connections.per.ip.overrides=a:1,,b:2",
            "Invalid value  for configuration max.connections.per.ip.overrides: not in the form host:count",
        ),
        (
            "max.connections.per.ip.overrides=[::1]:5",
            "max.connections.per.ip.overrides contains invalid addresses : [::1]",
        ),
        (
            "max.connections.per.ip.overrides=localhost:" + "9" * 5000,
            f"Invalid value localhost:{'9' * 5000} for configuration max.connections.per.ip.overrides: "
            "not in the form host:count",
        ),
        ("a=\\u12", "server.properties, line 1: a \\u escape needs four hexadecimal digits"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str | bytes, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_text(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        ("", {}),
        (",", {}),
        ("localhost: 5 ,::1:\uff16,", {"localhost": 5, "::1": 6}),
        ("10.0.0.1:0, a-b%1.c_d:-1", {"10.0.0.1": 0, "a-b%1.c_d": -1}),
    ],
)
def test_connections_of_single_hosts(text: str, overrides: dict[str, int]) -> None:
    assert connection_overrides(text) == overrides


def test_a_file_is_iso_8859_1() -> None:
    """As Java has it: whatever the bytes are, they are characters; all others are escaped."""
    config = load_text(b"# caf\xe9\nlog.dirs=/tmp/\xfc,/tmp/\\u4f60,/tmp/\xc3\xbc\n")
    assert config.log_dirs == ("/tmp/\xfc", "/tmp/\u4f60", "/tmp/\xc3\xbc")


def test_a_missing_file_is_an_error(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"^cannot read .*/none.properties: No such file or directory$"):
        load(str(tmp_path / "none.properties"))


def test_a_file_on_disk(tmp_path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions = 7\n")
    assert load(str(path))["num.partitions"] == 7


def test_a_key_of_a_later_version_may_have_its_default() -> None:
    config = load_text("cordoned.log.dirs=\noffsets.topic.replication.factor=1\nssl.cipher.suites=")
    assert config["cordoned.log.dirs"] == ()
    assert config.warnings == ()


def test_the_broker_id_has_two_names() -> None:
    assert load_text("broker.id=7").broker_id == 7
    assert load_text("node.id=8")["broker.id"] == 8
    assert load_text("node.id=8\nbroker.id=8").broker_id == 8
    assert load_text("node.id=8\nbroker.id=-1").broker_id == 8


def test_all_listeners_a_controllers_leaves_the_default() -> None:
    config = load_text(
        "listeners=CONTROLLER://:1\nadvertised.listeners=CONTROLLER://:1\ncontroller.listener.names=controller"
    )
    assert config["listeners"] == ("PLAINTEXT://localhost:9092",)
    assert config["advertised.listeners"] is None


def test_dynamic_values_stand_over_all_and_do_not_add_up() -> None:
    config = BrokerConfig({"message.max.bytes": "1", "log.retention.hours": "1"})
    first = config.with_dynamic({"message.max.bytes": "2"}, {"message.max.bytes": "3", "background.threads": "4"})
    assert first["message.max.bytes"] == 2
    assert first["background.threads"] == 4
    second = first.with_dynamic({}, {"message.max.bytes": "3"})
    assert (second["message.max.bytes"], second["background.threads"]) == (3, 10)
    none = second.with_dynamic({}, {})
    assert none["message.max.bytes"] == 1
    assert (none.dynamic, none.dynamic_defaults) == ({}, {})
    assert config["message.max.bytes"] == 1
    assert config.with_dynamic({}) is config
    with pytest.raises(ConfigError):
        config.with_dynamic({"message.max.bytes": "-1"})


def test_dynamic_milliseconds_go_before_hours_from_the_file() -> None:
    config = BrokerConfig({"log.retention.hours": "1", "log.retention.ms": "2"})
    assert config.with_dynamic({"log.retention.ms": "3"})["log.retention.ms"] == 3


def test_the_configuration_cannot_be_changed() -> None:
    given = {"num.partitions": "2"}
    config = BrokerConfig(given)
    given["num.partitions"] = "3"
    assert config.originals == {"num.partitions": "2"}
    with pytest.raises(TypeError):
        config.originals["x"] = "y"  # type: ignore[index]
    with pytest.raises(TypeError):
        config["num.partitions"] = 5  # type: ignore[index]


LAGS = {"log.cleaner.min.compaction.lag.ms": "3600000", "log.cleaner.max.compaction.lag.ms": "60000"}
LOCAL_MS = {"log.local.retention.ms": "100", "log.retention.ms": "50"}
LOCAL_BYTES = {"log.local.retention.bytes": "-1", "log.retention.bytes": "50"}
TIERED = {"remote.log.storage.system.enable": "true"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (LAGS, "conflict topic config setting min.compaction.lag.ms (3600000) > max.compaction.lag.ms (60000)"),
        (
            TIERED | LOCAL_MS,
            "Invalid value 100 for configuration log.local.retention.ms: "
            "Value must not be more than log.retention.ms property value: 50",
        ),
        (
            TIERED | LOCAL_BYTES,
            "Invalid value -1 for configuration log.local.retention.bytes: "
            "Value must not be -1 as log.retention.bytes value is set as 50.",
        ),
    ],
)
def test_defaults_of_topics_that_no_broker_starts_with(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        BrokerConfig(settings)
    assert str(error.value) == message


def test_defaults_of_topics_that_are_refused_at_run_time_are_others() -> None:
    """As in Apache Kafka: lags may contradict each other then, and local retention counts though nothing is tiered."""
    broker = BrokerConfig(LOCAL_MS | LOCAL_BYTES)
    with pytest.raises(ConfigError, match=r"log\.local\.retention\.ms: Value must not be more"):
        BrokerConfig({}).with_dynamic({}, LOCAL_MS)
    with pytest.raises(ConfigError, match=r"log\.local\.retention\.bytes: Value must not be -1"):
        BrokerConfig({}).with_dynamic(LOCAL_BYTES)
    with pytest.raises(ConfigError, match=r"log\.local\.retention\.ms: Value must not be more"):
        broker.with_dynamic({"log.retention.minutes": "0"} | {"log.retention.ms": "51"})
    assert broker.with_dynamic({"log.local.retention.ms": "50", "log.local.retention.bytes": "-2"})
    assert broker.with_dynamic({"max.connections": "7"})["max.connections"] == 7
    assert broker.with_dynamic({"log.retention.ms": "100"})["log.retention.ms"] == 100
    assert BrokerConfig({}).with_dynamic({}, LAGS)["log.cleaner.max.compaction.lag.ms"] == 60_000
