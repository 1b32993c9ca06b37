"""Where kwire answers otherwise than Apache Kafka on purpose.

Every test that meets one of these names it; a test fails where a difference has no name here, and where a deviation
that it names has gone. `python -m compat_tests.oracle.deviations` writes the README's table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple


def _anything(kafkas: Any, kwires: Any) -> bool:
    return True


class Deviation(NamedTuple):
    """`where` is a pattern for a step of a scenario and a path in its response, such as `Fetch v13 .*error_code`; the
    empty one stands for what is shown by tests of kwire alone.

    `when` says of Apache Kafka's value and kwire's whether this is the deviation.
    """

    name: str
    why: str
    where: str = ""
    when: Callable[[Any, Any], bool] = _anything

    def covers(self, where: str, kafkas: Any, kwires: Any) -> bool:
        return bool(self.where) and re.search(self.where, where) is not None and self.when(kafkas, kwires)


_ALL = (
    Deviation(
        "APIs to come",
        "ApiVersions lists what kwire has; share and streams groups, security and KRaft's own APIs are not among it.",
        r"ApiVersions v.* api_keys\.\d+$",
    ),
    Deviation(
        "features of Apache Kafka alone",
        "metadata.version and kraft.version are levels of KRaft's log, which kwire does not have; streams.version, "
        "share.version and eligible.leader.replicas.version switch on what kwire does not do yet. It neither tells "
        "them nor lets them be set.",
        r"ApiVersions v.* (supported|finalized)_features(\.(metadata|kraft|streams|share|eligible\.leader\.replicas)"
        r"\.version)?$|UpdateFeatures v.* error_(code|message)$",
    ),
    Deviation(
        "why a batch is refused",
        "With most refusals of a batch Apache Kafka leaves error_message null, kwire says what is wrong with it.",
        r"Produce v.*partition_responses\.-?\d+\.error_message$",
        lambda kafkas, kwires: kafkas is None,
    ),
    Deviation(
        "many bad records in a batch",
        "Where more than 10,000 records of a batch are refused, the answer names the first 10,000 of them: compressed, "
        "a small batch may have millions. Apache Kafka names all.",
    ),
    Deviation(
        "records not looked at",
        "Apache Kafka looks into every record of every batch. kwire does where something depends on it (compacted "
        "topics, limits of timestamps, recompression); otherwise a batch whose CRC is right is taken as its header "
        "describes it, but for small batches that are not compressed.",
        r"(Produce|Fetch) v",
    ),
    Deviation(
        "look-up by time after a deletion",
        "While a segment whose records were all deleted is still there, Apache Kafka looks up times in it and finds "
        "no offset; kwire finds the first record that is left.",
        r"ListOffsets v.*\.(timestamp|offset|leader_epoch)$",
        lambda kafkas, kwires: kafkas == -1,
    ),
    Deviation(
        "created when answered",
        "A topic that Metadata creates is there in the answer, and where it can't be created the answer says so; "
        "Apache Kafka says UNKNOWN_TOPIC_OR_PARTITION until it is there.",
        r"Metadata v\d+ \((new|a name that collides)\) ",
    ),
    Deviation(
        "topics without a name",
        "A topic with an empty name, or with neither name nor id, fails Apache Kafka's whole answer with "
        "UNKNOWN_SERVER_ERROR; kwire answers INVALID_TOPIC_EXCEPTION for that topic.",
        r"(Metadata v1\d \(None, no id\)|DescribeTopicPartitions v0 \(''\))",
    ),
    Deviation(
        "features to come",
        "A config whose feature kwire does not have yet, such as those of share groups and streams groups, is refused "
        "with INVALID_CONFIG unless it has its default.",
        r"(CreateTopics|AlterConfigs) v",
    ),
    Deviation(
        "too many partitions at once",
        "Apache Kafka's controller adds 10,000 partitions at most in one request, and answers UNKNOWN_SERVER_ERROR "
        "beyond that; kwire answers POLICY_VIOLATION, as both do for CreateTopics.",
        r"CreatePartitions v",
    ),
    Deviation(
        "defaults for one broker",
        "kwire listens on localhost alone (Apache Kafka on every interface), gives its internal topics one replica "
        "(Apache Kafka 3) and that of the transactions a min.insync.replicas of 1 (2), keeps its data in ./kwire-data, "
        "has no JMX to report metrics to, leaves it to the system how much of what comes it holds for a connection "
        "(`socket.receive.buffer.bytes` is -1, where Apache Kafka's default and its `server.properties` have 102400), "
        "and lets a group begin at once where Apache Kafka waits three seconds for more members.",
        r"configs\.(log\.dir|metric\.reporters|socket\.receive\.buffer\.bytes|"
        r"(group\.)?(streams\.)?initial\.rebalance\.delay\.ms)\.",
    ),
    Deviation(
        "listeners are fixed",
        "kwire's listeners change with a restart only.",
        r"configs\.listener\.security\.protocol\.map\.read_only$",
    ),
    Deviation(
        "no client metrics subscriptions",
        "Apache Kafka tells the defaults of the configs of client metrics subscriptions, and lets them be set; kwire, "
        "where nothing would act on them, tells none and answers INVALID_REQUEST.",
        r"results\.16 name\.configs|AlterConfigs v.* \(type 16\)",
    ),
    Deviation(
        "no threads to tune",
        "Apache Kafka halves or doubles the number of any of its threads at most; kwire, which has one event loop and "
        "few worker threads, takes any valid number.",
        r"AlterConfigs v.*(num\.io\.threads|log\.cleaner\.threads', '[09])",
    ),
    Deviation(
        "requests that break Apache Kafka",
        "Apache Kafka sends no answer at all to a Produce with null for records, to an AlterConfigs that names a "
        "resource twice, and to the consumers of a group one of whose subscriptions can't be read; a JoinGroup with an "
        "instance id and a member id that was given to a client without fails with UNKNOWN_SERVER_ERROR; an "
        "unknown operation in IncrementalAlterConfigs makes its controller resign. kwire answers INVALID_RECORD, "
        "INVALID_REQUEST, the rebalance, UNKNOWN_MEMBER_ID and INVALID_REQUEST.",
    ),
    Deviation(
        "groups that change over",
        "When a consumer group becomes a classic one, in Apache Kafka a member that waits for a partition may never "
        "hear that it has it; when a classic group becomes a consumer group while it rebalances, or the last member "
        "of the consumer protocol has left one that may not change back, partitions are left to nobody until the next "
        "member joins. kwire rebalances. And a JoinGroup with a member id that is refused makes Apache Kafka forget an "
        "empty consumer group, whose epochs begin anew.",
        r"waiting Heartbeat v4 .*error_code$|\(again joins\) member_epoch$",
        lambda kafkas, kwires: (kafkas, kwires) in (("NONE", "REBALANCE_IN_PROGRESS"), (2, 4)),
    ),
    Deviation(
        "members that join oddly",
        "When a member joins without topics, or as a static one under the id that it had as a dynamic one, Apache "
        "Kafka may assign partitions to members that do not subscribe to them, or tell the member that it has none; "
        "kwire goes by what the members subscribe to, and by their ids.",
        r"ConsumerGroupHeartbeat v1 \((one gets all|odd joins)\) assignment",
    ),
    Deviation(
        "RE2 and RE2/J",
        "kwire refuses a regular expression that has more than 10,000 characters or is compiled to more than some "
        "10,000 instructions, which would take long to compile and to match, and an escaped letter that is not ASCII; "
        "it takes a brace as itself before a repetition operator (`{?`). Apache Kafka has it the other way round.",
        r"ConsumerGroupHeartbeat v1 \(odd ",
    ),
    Deviation(
        "no eligible leader replicas",
        "A new KRaft cluster has KIP-966 switched on, and to that end min.insync.replicas set for all brokers; kwire "
        "has no such replicas, and its min.insync.replicas is a default.",
        r"min\.insync\.replicas(\.config_source|\.synonyms)?$|results\.4 \.configs$",
    ),
    Deviation(
        "no share groups",
        "kwire has no share coordinator: FindCoordinator for share partitions answers COORDINATOR_NOT_AVAILABLE, and "
        "Metadata does not create `__share_group_state`.",
        r"FindCoordinator v6 \(share\) ",
    ),
    Deviation(
        "damage behind which a log goes on",
        "A recovery of Apache Kafka cuts a log at the first batch that is damaged, and removes what lies behind it. "
        "That of kwire steps over one that is below the recovery point, where a write can't be torn, and says where "
        "it is.",
    ),
    Deviation(
        "no room in remote storage",
        "With max_bytes 0 the first batch comes nevertheless, so that nobody is stuck (KIP-74); Apache Kafka does not "
        "send it where it is in remote storage.",
        r"Fetch v.*, 0 .*\.records$",
        lambda kafkas, kwires: kafkas == [],
    ),
    Deviation(
        "remote storage that can't be read",
        "Where remote storage can't be read, kwire answers KAFKA_STORAGE_ERROR, which makes clients try again; Apache "
        "Kafka answers UNKNOWN_SERVER_ERROR.",
        r"\(lost: .*error_code$",
        lambda kafkas, kwires: (kafkas, kwires) == ("UNKNOWN_SERVER_ERROR", "KAFKA_STORAGE_ERROR"),
    ),
    Deviation(
        "largest timestamp in remote storage",
        "The offset of the largest timestamp is looked for in remote storage too; Apache Kafka looks at what is here.",
        r"ListOffsets v.*: -3, .*\.(timestamp|offset|leader_epoch)$",
    ),
    Deviation(
        "remote log metadata is flushed",
        "A record of `__remote_log_metadata` may be all that is left of a segment when the power goes, so its "
        "flush.messages is 1 in kwire. Its replication factor and min.insync.replicas are 1 unless set, Apache Kafka's "
        "3 and 2.",
        r"DescribeConfigs .* __remote_log_metadata\.configs\.(flush\.messages|min\.insync\.replicas)\.",
    ),
    Deviation(
        "deleted partitions in remote log metadata",
        "kwire writes to `__remote_log_metadata` that a partition is to be deleted and when it is, so that what a "
        "crash interrupts is done later; Apache Kafka writes nothing about partitions.",
        r"partitions \(topic deleted\) ",
        lambda kafkas, kwires: kafkas == "<absent>",
    ),
    Deviation(
        "more partitions for `__remote_log_metadata`",
        "By their number it is known which one has the records of a partition, so kwire refuses to add any "
        "(INVALID_REQUEST); Apache Kafka adds them.",
        r"CreatePartitions .*\(more metadata\)",
    ),
)

DEVIATIONS = {deviation.name: deviation for deviation in _ALL}
"""By name."""


def markdown() -> str:
    """The table as the README has it."""
    rows = [f"| {deviation.name} | {deviation.why} |" for deviation in _ALL]
    return "\n".join(["| where | why |", "|---|---|", *rows])


if __name__ == "__main__":
    print(markdown())
