"""What the records of __cluster_metadata add up to, as Apache Kafka's own image of them does."""

from __future__ import annotations

from dataclasses import dataclass, field

from kwire.cluster.adoption import AdoptionError
from kwire.protocol import uuids
from kwire.protocol.metadata_records.access_control import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from kwire.protocol.metadata_records.broker import RegisterBrokerRecord, UnregisterBrokerRecord
from kwire.protocol.metadata_records.client_quota import ClientQuotaRecord
from kwire.protocol.metadata_records.config import ConfigRecord
from kwire.protocol.metadata_records.delegation_token import DelegationTokenRecord, RemoveDelegationTokenRecord
from kwire.protocol.metadata_records.feature_level import FeatureLevelRecord
from kwire.protocol.metadata_records.partition import NO_LEADER_CHANGE, PartitionChangeRecord, PartitionRecord
from kwire.protocol.metadata_records.producer_ids import ProducerIdsRecord
from kwire.protocol.metadata_records.scram import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from kwire.protocol.metadata_records.topic import RemoveTopicRecord, TopicRecord
from kwire.protocol.metadata_records.transaction import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kwire.protocol.schema import Message

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
"""Resource types of configs."""

Entity = tuple[tuple[str, str | None], ...]


@dataclass(slots=True)
class KraftPartition:
    """The state of a partition: leadership as it was last written, replicas with the log dirs they are in."""

    replicas: list[int]
    isr: list[int]
    eligible: list[int]
    """Replicas out of the ISR that have all committed records nevertheless (KIP-966)."""
    leader_epoch: int
    partition_epoch: int
    directories: list[bytes]
    """A log dir's id for each replica, or nothing."""


@dataclass(slots=True)
class KraftTopic:
    name: str
    id: bytes
    partitions: dict[int, KraftPartition] = field(default_factory=dict)


@dataclass(slots=True)
class KraftState:
    """All that the cluster agreed on, as far as it means something outside of it."""

    topics: dict[bytes, KraftTopic] = field(default_factory=dict)
    """By id."""
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    """By resource type and name; no value is empty."""
    features: dict[str, int] = field(default_factory=dict)
    next_producer_id: int = 0
    brokers: dict[int, list[bytes]] = field(default_factory=dict)
    """The ids of the log dirs with which each broker registered last."""
    quotas: dict[tuple[Entity, str], float] = field(default_factory=dict)
    scram_credentials: set[tuple[str, int]] = field(default_factory=set)
    acls: dict[bytes, AccessControlEntryRecord] = field(default_factory=dict)
    delegation_tokens: set[str] = field(default_factory=set)
    _transaction: list[Message] | None = None

    def apply(self, message: Message) -> None:
        """Counts in a record. Raises AdoptionError where it speaks of a topic or partition that is not there."""
        match message:
            case BeginTransactionRecord():
                self._transaction = []
            case AbortTransactionRecord():
                self._transaction = None
            case EndTransactionRecord():
                whole, self._transaction = self._transaction or [], None
                for each in whole:
                    self._apply(each)
            case _ if self._transaction is not None:
                self._transaction.append(message)
            case _:
                self._apply(message)

    def _apply(self, message: Message) -> None:
        match message:
            case TopicRecord():
                self.topics[message.topic_id] = KraftTopic(message.name, message.topic_id)
            case RemoveTopicRecord():
                topic = self._topic(message.topic_id)
                del self.topics[topic.id]
                self.configs.pop((TOPIC, topic.name), None)
            case PartitionRecord():
                self._topic(message.topic_id).partitions[message.partition_id] = KraftPartition(
                    message.replicas,
                    message.isr,
                    message.eligible_leader_replicas or [],
                    message.leader_epoch,
                    message.partition_epoch,
                    message.directories,
                )
            case PartitionChangeRecord():
                self._change_partition(message)
            case ConfigRecord():
                self._set_config(message)
            case FeatureLevelRecord():
                self.features[message.name] = message.feature_level
            case ProducerIdsRecord():
                self.next_producer_id = message.next_producer_id
            case RegisterBrokerRecord():
                self.brokers[message.broker_id] = message.log_dirs
            case UnregisterBrokerRecord():
                self.brokers.pop(message.broker_id, None)
            case _:
                self._apply_security(message)

    def _apply_security(self, message: Message) -> None:
        match message:
            case ClientQuotaRecord():
                entity = tuple(sorted((each.entity_type, each.entity_name) for each in message.entity))
                self.quotas[entity, message.key] = message.value
                if message.remove:
                    del self.quotas[entity, message.key]
            case UserScramCredentialRecord():
                self.scram_credentials.add((message.name, message.mechanism))
            case RemoveUserScramCredentialRecord():
                self.scram_credentials.discard((message.name, message.mechanism))
            case AccessControlEntryRecord():
                self.acls[message.id] = message
            case RemoveAccessControlEntryRecord():
                self.acls.pop(message.id, None)
            case DelegationTokenRecord():
                self.delegation_tokens.add(message.token_id)
            case RemoveDelegationTokenRecord():
                self.delegation_tokens.discard(message.token_id)

    def _topic(self, topic_id: bytes) -> KraftTopic:
        topic = self.topics.get(topic_id)
        if topic is None:
            raise AdoptionError(
                f"the metadata speaks of a topic with id {uuids.to_text(topic_id)} that was not created"
            )
        return topic

    def _change_partition(self, change: PartitionChangeRecord) -> None:
        topic = self._topic(change.topic_id)
        partition = topic.partitions.get(change.partition_id)
        if partition is None:
            raise AdoptionError(f"the metadata speaks of {topic.name}-{change.partition_id}, which was not created")
        if change.replicas is not None:
            partition.replicas = change.replicas
        if change.isr is not None:
            partition.isr = change.isr
        if change.eligible_leader_replicas is not None:
            partition.eligible = change.eligible_leader_replicas
        if change.directories is not None:
            partition.directories = change.directories
        if change.leader != NO_LEADER_CHANGE:
            partition.leader_epoch += 1
        partition.partition_epoch += 1

    def _set_config(self, record: ConfigRecord) -> None:
        key = record.resource_type, record.resource_name
        configs = self.configs.setdefault(key, {})
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
        if not configs:
            del self.configs[key]
