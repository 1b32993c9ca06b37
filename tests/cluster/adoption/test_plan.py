"""What an import would bring over: which topics, from where to where, and what is said of the rest."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.marks import Mode
from kwire.cluster.adoption.plan import Plan
from kwire.cluster.adoption.state import BROKER, CLIENT_METRICS, GROUP, TOPIC
from kwire.cluster.adoption.taking import plan_import
from kwire.protocol.metadata_records.broker import RegisterBrokerRecord
from kwire.protocol.metadata_records.feature_level import FeatureLevelRecord
from kwire.storage import checkpoints, layout
from tests.cluster.adoption.apache import CLUSTER, FEATURES, FILES, NODE, ApacheDirs, an_id, config, topic


def planned(dirs: ApacheDirs, *targets: str, mode: Mode = Mode.COPY, skip_incomplete: bool = False) -> Plan:
    wanted = targets or (str(dirs.paths[0].parent / "kwire"),)
    return plan_import(FILES, dirs.names, wanted, mode, skip_incomplete=skip_incomplete)


def refusal(dirs: ApacheDirs, *targets: str, **options: object) -> str:
    with pytest.raises(AdoptionError) as caught:
        planned(dirs, *targets, **options)  # type: ignore[arg-type]
    return str(caught.value)


@pytest.fixture
def dirs(tmp_path: Path) -> ApacheDirs:
    found = ApacheDirs(tmp_path, 2)
    found.log(*topic("orders", 1, 2), *topic("prices", 2))
    found.partition("orders", 1, 0)
    found.partition("orders", 1, 1, in_dir=1, values=["much longer than the others"] * 9)
    found.partition("prices", 2)
    return found


def test_topics_with_their_partitions(dirs: ApacheDirs) -> None:
    plan = planned(dirs)
    image = plan.image
    assert (image.cluster_id, image.next_producer_id, plan.node_id, plan.clean) == (CLUSTER, 5000, NODE, True)
    assert image.features == {"group.version": 1, "transaction.version": 2}
    assert {name: (topic.id, len(topic.partitions)) for name, topic in image.topics.items()} == {
        "orders": (an_id(1), 2),
        "prices": (an_id(2), 1),
    }
    state = image.topics["orders"].partitions[1]
    assert (state.replicas, state.isr, state.leader) == ((NODE,), (NODE,), NODE)
    assert (state.leader_epoch, state.partition_epoch) == (5, 8)
    assert [(carry.key, carry.source.path) for carry in plan.carries] == [
        (("orders", 0), dirs.names[0]),
        (("orders", 1), dirs.names[1]),
        (("prices", 0), dirs.names[0]),
    ]
    assert plan.left_out == plan.empty == []


def test_as_many_targets_as_dirs_are_their_counterparts(dirs: ApacheDirs, tmp_path: Path) -> None:
    plan = planned(dirs, f"{tmp_path}/x", f"{tmp_path}/y")
    assert [carry.target for carry in plan.carries] == [0, 1, 0]


def test_otherwise_the_largest_goes_where_there_is_least(dirs: ApacheDirs, tmp_path: Path) -> None:
    plan = planned(dirs, f"{tmp_path}/x", f"{tmp_path}/y", f"{tmp_path}/z")
    assert sorted(carry.target for carry in plan.carries) == [0, 1, 2]
    assert max(plan.carries, key=lambda carry: carry.bytes).target == 0


def test_a_partition_to_which_nothing_was_written(dirs: ApacheDirs) -> None:
    dirs.log(*topic("orders", 1, 2), *topic("new", 7, directories=[dirs.dir_id(1)]))
    plan = planned(dirs)
    assert plan.empty == ["new-0"]
    assert plan.left_out == [f"{dirs.names[0]}/prices-0: the cluster has no such topic any more"]


@pytest.mark.parametrize("checkpoint", layout.OFFSET_CHECKPOINTS)
def test_a_partition_that_was_written_to_and_is_gone(dirs: ApacheDirs, checkpoint: str) -> None:
    """Whoever took it away, and wherever it is."""
    shutil.rmtree(dirs.paths[0] / "prices-0")
    path = dirs.paths[0] / checkpoint
    path.write_bytes(checkpoints.encode_offsets({("prices", 0): 2, ("orders", 0): 2}))
    why = f"prices (partition 0 was written to, as {path} says, and its folder is not there)"
    assert why in refusal(dirs)
    assert planned(dirs, skip_incomplete=True).left_out[0] == f"topic {why}"
    path.write_bytes(checkpoints.encode_offsets({("prices", 0): 0, ("orders", 0): 2}))
    assert planned(dirs).empty == ["prices-0"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"replicas": [8, 9]}, "partition 0 is on brokers 8, 9"),
        ({"directories": [an_id(0xEE)]}, "partition 0 is in a log dir that is not given"),
    ],
)
def test_a_topic_that_is_not_wholly_here(dirs: ApacheDirs, fields: dict[str, object], why: str) -> None:
    dirs.log(*topic("orders", 1, 2), *topic("prices", 2), *topic("elsewhere", 3, **fields))
    assert (
        refusal(dirs) == f"1 topics are not here, or not wholly: elsewhere ({why}) (--skip-incomplete leaves them out)"
    )
    plan = planned(dirs, skip_incomplete=True)
    assert list(plan.image.topics) == ["orders", "prices"]
    assert plan.left_out == [f"topic elsewhere ({why})"]


def test_records_of_an_old_message_format(dirs: ApacheDirs) -> None:
    log = dirs.paths[0] / "prices-0" / layout.segment_name(0, layout.LOG)
    data = log.read_bytes()
    log.write_bytes(data[:16] + b"\1" + data[17:])
    assert "prices (partition 0 has records of message format v1, which kwire does not read)" in refusal(dirs)
    assert list(planned(dirs, skip_incomplete=True).image.topics) == ["orders"]
    log.write_bytes(bytes(100))  # preallocated
    assert list(planned(dirs).image.topics) == ["orders", "prices"]


def test_other_brokers_are_named(dirs: ApacheDirs) -> None:
    dirs.log(*topic("orders", 1, 2), *topic("prices", 2), RegisterBrokerRecord(broker_id=8))
    assert planned(dirs).left_out == ["the data of broker 8 of the cluster"]


def test_a_log_dir_that_is_not_given(dirs: ApacheDirs) -> None:
    dirs.paths = dirs.paths[:1]
    assert "orders (partition 1 is in a log dir that is not given)" in refusal(
        dirs, str(dirs.paths[0].parent / "kwire")
    )


def test_a_replica_that_was_not_in_sync(dirs: ApacheDirs) -> None:
    dirs.log(*topic("orders", 1, 2, replicas=[8, NODE], isr=[8]), *topic("prices", 2, replicas=[NODE, 8]))
    said = planned(dirs).left_out
    assert [line.partition(":")[0] for line in said] == ["orders-0", "orders-1"]
    assert "was not in sync" in said[0]


def test_folders_of_no_live_partition(dirs: ApacheDirs) -> None:
    """Deleted ones, those of topics that are gone, and one that had the name of a topic before."""
    (dirs.paths[0] / f"x-0.{'0' * 32}-delete").mkdir()
    dirs.partition("gone", 9)
    dirs.log(*topic("orders", 1, 2), *topic("prices", 3))
    ends = checkpoints.encode_offsets({("prices", 0): 2})  # of the folder, which is not the topic's
    (dirs.paths[0] / layout.RECOVERY_POINTS).write_bytes(ends)
    plan = planned(dirs)
    assert plan.empty == ["prices-0"]
    assert [line.rpartition("/")[2] for line in plan.left_out] == [
        "gone-0: the cluster has no such topic any more",
        f"x-0.{'0' * 32}-delete: the folder of no live partition",
    ]


CONFIGS = [
    config(TOPIC, "prices", "cleanup.policy", "compact"),
    config(TOPIC, "prices", "remote.storage.enable", "true"),
    config(TOPIC, "prices", "invented", "1"),
    config(BROKER, "", "log.cleaner.threads", "2"),
    config(BROKER, "", "compression.type", "rubbish"),
    config(BROKER, str(NODE), "log.retention.ms", "7"),
    config(BROKER, str(NODE), "ssl.key.password", "secret"),
    config(BROKER, "8", "log.retention.ms", "7"),
    config(GROUP, "readers", "consumer.session.timeout.ms", "50000"),
    config(GROUP, "readers", "share.session.timeout.ms", "50000"),
    config(CLIENT_METRICS, "all", "interval.ms", "1000"),
]


def test_configs(dirs: ApacheDirs) -> None:
    dirs.log(*topic("orders", 1, 2), *topic("prices", 2), *CONFIGS)
    plan = planned(dirs)
    kept = {key: dict(values) for key, values in plan.image.configs.items()}
    said = "\n".join(plan.left_out)
    assert kept["topic", "prices"] == {"cleanup.policy": "compact"}
    assert kept["broker", ""] == {"log.cleaner.threads": "2"}
    assert kept["broker", str(NODE)]["log.retention.ms"] == "7"
    assert kept["group", "readers"] == {"consumer.session.timeout.ms": "50000"}
    assert len(kept) == 4
    for name, whose in (
        ("remote.storage.enable", "topic prices"),
        ("invented", "topic prices"),
        ("compression.type", "all brokers"),
        ("share.session.timeout.ms", "group readers"),
    ):
        assert f"config {name} of {whose}: " in said
    assert "configs of broker 8: log.retention.ms" in said
    assert "client metrics subscription all" in said
    assert "secret" not in said


def test_features_that_nobody_set_are_at_level_0(dirs: ApacheDirs) -> None:
    """Where kwire has no level it takes the newest, which the cluster was not at."""
    path = dirs.metadata / layout.segment_name(0, layout.LOG)
    dirs.log(*topic("orders", 1, 2), *topic("prices", 2), features=FEATURES[:1])
    assert path.stat().st_size
    assert planned(dirs).image.features == {"group.version": 0, "transaction.version": 0}


def test_a_feature_of_the_future(dirs: ApacheDirs) -> None:
    dirs.log(features=[*FEATURES, FeatureLevelRecord(name="transaction.version", feature_level=9)])
    assert "transaction.version at level 9" in refusal(dirs)


# Which dirs


def test_dirs_from_before_there_were_ids(dirs: ApacheDirs) -> None:
    for path in dirs.paths:
        lines = (path / layout.META_PROPERTIES).read_text().splitlines(keepends=True)
        (path / layout.META_PROPERTIES).write_text("".join(line for line in lines if "directory.id" not in line))
    found = planned(dirs)
    assert {source.id for source in found.sources} == {bytes(16)}
    assert len(found.carries) == 3


def test_a_copy_of_a_dir(dirs: ApacheDirs) -> None:
    dirs.identify(dirs.paths[1], 0)
    assert "are the same dir, or one is a copy of the other" in refusal(dirs)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"node_id": "4"}, "import one broker at a time"),
        ({"cluster_id": "A" * 22}, "import one broker at a time"),
        ({"version": "0"}, "only brokers without ZooKeeper"),
        ({"node_id": "x"}, "only brokers without ZooKeeper"),
        ({"directory_id": "rubbish"}, "'rubbish' is no directory id"),
    ],
)
def test_dirs_that_do_not_belong_together(dirs: ApacheDirs, properties: dict[str, str], said: str) -> None:
    dirs.identify(dirs.paths[1], 1, **properties)
    assert said in refusal(dirs)


def test_a_partition_that_is_in_two_dirs(dirs: ApacheDirs) -> None:
    dirs.partition("prices", 2, in_dir=1)
    assert "prices-0 is in" in refusal(dirs)


def test_what_is_no_data_directory(dirs: ApacheDirs, tmp_path: Path) -> None:
    dirs.paths.append(tmp_path)
    assert refusal(dirs, "/nowhere") == f"{tmp_path} is no data directory of Apache Kafka: meta.properties is missing"


def test_what_is_kwires_own(dirs: ApacheDirs) -> None:
    (dirs.paths[0] / "kwire-metadata.journal").touch()
    assert "is kwire's own already" in refusal(dirs)


def test_dirs_without_the_metadata(dirs: ApacheDirs) -> None:
    dirs.paths.pop(0)
    assert "__cluster_metadata-0 is in none of" in refusal(dirs, "/nowhere")


def test_targets(dirs: ApacheDirs, tmp_path: Path) -> None:
    assert "lies in a dir that is to be imported" in refusal(dirs, f"{dirs.paths[0]}/kwire")
    assert "names a dir twice" in refusal(dirs, f"{tmp_path}/x", f"{tmp_path}/x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "orders-0").mkdir()
    assert "is not empty" in refusal(dirs, f"{tmp_path}/full")


@pytest.mark.parametrize("name", [layout.RECOVERY_POINTS, f"prices-0/{layout.PARTITION_METADATA}"])
def test_files_that_cannot_be_read(dirs: ApacheDirs, name: str) -> None:
    (dirs.paths[0] / name).write_bytes(b"rubbish")
    assert f"{dirs.paths[0]}/{name}: " in refusal(dirs)
