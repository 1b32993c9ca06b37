"""The types of record of __cluster_metadata by number: those that are declared, and those that need not be."""

from __future__ import annotations

from kwire.protocol.metadata_records.access_control import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from kwire.protocol.metadata_records.broker import RegisterBrokerRecord, UnregisterBrokerRecord
from kwire.protocol.metadata_records.client_quota import ClientQuotaRecord
from kwire.protocol.metadata_records.config import ConfigRecord
from kwire.protocol.metadata_records.delegation_token import DelegationTokenRecord, RemoveDelegationTokenRecord
from kwire.protocol.metadata_records.feature_level import FeatureLevelRecord
from kwire.protocol.metadata_records.partition import PartitionChangeRecord, PartitionRecord
from kwire.protocol.metadata_records.producer_ids import ProducerIdsRecord
from kwire.protocol.metadata_records.scram import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from kwire.protocol.metadata_records.topic import RemoveTopicRecord, TopicRecord
from kwire.protocol.metadata_records.transaction import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kwire.protocol.schema import Message

METADATA_RECORD_TYPES: dict[int, type[Message]] = {
    message.api_key: message
    for message in (
        RegisterBrokerRecord,
        UnregisterBrokerRecord,
        TopicRecord,
        PartitionRecord,
        ConfigRecord,
        PartitionChangeRecord,
        RemoveTopicRecord,
        DelegationTokenRecord,
        UserScramCredentialRecord,
        FeatureLevelRecord,
        ClientQuotaRecord,
        ProducerIdsRecord,
        AccessControlEntryRecord,
        RemoveAccessControlEntryRecord,
        RemoveUserScramCredentialRecord,
        BeginTransactionRecord,
        EndTransactionRecord,
        AbortTransactionRecord,
        RemoveDelegationTokenRecord,
    )
}
"""Those that say what a cluster holds."""

PASSING_RECORD_TYPES = {
    7: "FenceBrokerRecord",
    8: "UnfenceBrokerRecord",
    17: "BrokerRegistrationChangeRecord",
    20: "NoOpRecord",
    21: "ZkMigrationStateRecord",
    27: "RegisterControllerRecord",
    28: "ClearElrRecord",
}
"""Those that mean nothing outside their cluster: which brokers run, which replicas were eligible to lead."""
