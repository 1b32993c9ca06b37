"""The APIs by number: their names, and from which version on their frames are flexible.

A header must be read before the message module of its API is imported, so the flexible versions stand here too.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from kwire.protocol.schema import NEVER


class ApiKey(IntEnum):
    """An API key of the Kafka protocol (int16 at the start of every request)."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


class Api(NamedTuple):
    """The API's name as Kafka writes it, and the first version whose request and response are flexible (KIP-482)."""

    name: str
    flexible_from: int


APIS: dict[int, Api] = {
    0: Api("Produce", 9),
    1: Api("Fetch", 12),
    2: Api("ListOffsets", 6),
    3: Api("Metadata", 9),
    8: Api("OffsetCommit", 8),
    9: Api("OffsetFetch", 6),
    10: Api("FindCoordinator", 3),
    11: Api("JoinGroup", 6),
    12: Api("Heartbeat", 4),
    13: Api("LeaveGroup", 4),
    14: Api("SyncGroup", 4),
    15: Api("DescribeGroups", 5),
    16: Api("ListGroups", 3),
    17: Api("SaslHandshake", NEVER),
    18: Api("ApiVersions", 3),
    19: Api("CreateTopics", 5),
    20: Api("DeleteTopics", 4),
    21: Api("DeleteRecords", 2),
    22: Api("InitProducerId", 2),
    23: Api("OffsetForLeaderEpoch", 4),
    24: Api("AddPartitionsToTxn", 3),
    25: Api("AddOffsetsToTxn", 3),
    26: Api("EndTxn", 3),
    27: Api("WriteTxnMarkers", 1),
    28: Api("TxnOffsetCommit", 3),
    29: Api("DescribeAcls", 2),
    30: Api("CreateAcls", 2),
    31: Api("DeleteAcls", 2),
    32: Api("DescribeConfigs", 4),
    33: Api("AlterConfigs", 2),
    34: Api("AlterReplicaLogDirs", 2),
    35: Api("DescribeLogDirs", 2),
    36: Api("SaslAuthenticate", 2),
    37: Api("CreatePartitions", 2),
    38: Api("CreateDelegationToken", 2),
    39: Api("RenewDelegationToken", 2),
    40: Api("ExpireDelegationToken", 2),
    41: Api("DescribeDelegationToken", 2),
    42: Api("DeleteGroups", 2),
    43: Api("ElectLeaders", 2),
    44: Api("IncrementalAlterConfigs", 1),
    45: Api("AlterPartitionReassignments", 0),
    46: Api("ListPartitionReassignments", 0),
    47: Api("OffsetDelete", NEVER),
    48: Api("DescribeClientQuotas", 1),
    49: Api("AlterClientQuotas", 1),
    50: Api("DescribeUserScramCredentials", 0),
    51: Api("AlterUserScramCredentials", 0),
    55: Api("DescribeQuorum", 0),
    56: Api("AlterPartition", 0),
    57: Api("UpdateFeatures", 0),
    60: Api("DescribeCluster", 0),
    61: Api("DescribeProducers", 0),
    64: Api("UnregisterBroker", 0),
    65: Api("DescribeTransactions", 0),
    66: Api("ListTransactions", 0),
    68: Api("ConsumerGroupHeartbeat", 0),
    69: Api("ConsumerGroupDescribe", 0),
    71: Api("GetTelemetrySubscriptions", 0),
    72: Api("PushTelemetry", 0),
    74: Api("ListConfigResources", 0),
    75: Api("DescribeTopicPartitions", 0),
    76: Api("ShareGroupHeartbeat", 0),
    77: Api("ShareGroupDescribe", 0),
    78: Api("ShareFetch", 0),
    79: Api("ShareAcknowledge", 0),
    80: Api("AddRaftVoter", 0),
    81: Api("RemoveRaftVoter", 0),
    83: Api("InitializeShareGroupState", 0),
    84: Api("ReadShareGroupState", 0),
    85: Api("WriteShareGroupState", 0),
    86: Api("DeleteShareGroupState", 0),
    87: Api("ReadShareGroupStateSummary", 0),
    88: Api("StreamsGroupHeartbeat", 0),
    89: Api("StreamsGroupDescribe", 0),
    90: Api("DescribeShareGroupOffsets", 0),
    91: Api("AlterShareGroupOffsets", 0),
    92: Api("DeleteShareGroupOffsets", 0),
}
"""Every API kwire has messages for, by key."""
