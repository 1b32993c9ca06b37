"""Changes of the in-sync replicas: the leader proposes, the controller decides (KIP-497, KIP-841, KIP-903).

`alter_partition` is the controller's decision, pure. `IsrUpdater` carries a leader's proposals to the metadata store:
all that piled up while a commit was under way go out in the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import trio

from kwire.metadata.changes import PartitionChanged
from kwire.metadata.image import BrokerImage, MetadataImage, PartitionImage
from kwire.metadata.store import MetadataStore, VersionConflict
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

ANY_EPOCH = -1
"""A broker epoch that is not checked: the replica has not told its own yet."""

RETRY_BACKOFF_S = 0.05
"""Between attempts when the store fails or its image lags behind what it committed."""


@dataclass(frozen=True, slots=True, eq=False)
class IsrProposal:
    """A new ISR for one partition, made by its leader in this leader epoch and on top of this partition epoch.

    `isr` maps each member to its broker epoch as the leader knows it, or ANY_EPOCH. One of the two callbacks is called
    once.
    """

    topic_id: bytes
    index: int
    leader_epoch: int
    partition_epoch: int
    isr: Mapping[int, int]
    committed: Callable[[PartitionImage], None]
    refused: Callable[[ErrorCode], None]


def may_join(broker: BrokerImage | None, broker_epoch: int | None) -> bool:
    """Whether a replica may be in the ISR: its broker is registered, not fenced, and not of an earlier life."""
    return (
        broker is not None
        and not broker.fenced
        and broker_epoch is not None
        and broker_epoch in (ANY_EPOCH, broker.epoch)
    )


def alter_partition(image: MetadataImage, leader: int, proposal: IsrProposal) -> PartitionChanged | None:
    """The change that a proposal of broker `leader` makes; None where the ISR is that already.

    Raises KafkaError with the AlterPartition response's code: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION,
    NOT_CONTROLLER (the leader knows more than this image), FENCED_LEADER_EPOCH, INVALID_REQUEST,
    INVALID_UPDATE_VERSION, INELIGIBLE_REPLICA.
    """
    topic = image.topic_by_id(proposal.topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if not 0 <= proposal.index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = topic.partitions[proposal.index]
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if proposal.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if leader != partition.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The leader is {partition.leader}")
    if proposal.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
    if leader not in proposal.isr or not set(proposal.isr) <= set(partition.replicas):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{sorted(proposal.isr)} is no ISR of {partition}")
    if not all(may_join(image.brokers.get(broker), epoch) for broker, epoch in proposal.isr.items()):
        raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
    if set(proposal.isr) == set(partition.isr):
        return None
    isr = tuple(broker for broker in partition.replicas if broker in proposal.isr)
    altered = replace(partition, isr=isr, partition_epoch=partition.partition_epoch + 1)
    return PartitionChanged(topic.name, proposal.index, altered)


class IsrUpdater:
    """Commits a broker's proposals, one commit at a time."""

    def __init__(self, store: MetadataStore, broker_id: int) -> None:
        self._store = store
        self._broker_id = broker_id
        self._proposals: list[IsrProposal] = []
        self._arrived = trio.Event()

    def submit(self, proposal: IsrProposal) -> None:
        """Takes a proposal; the outcome comes by one of its callbacks."""
        self._proposals.append(proposal)
        self._arrived.set()

    async def run(self) -> None:
        """Serves proposals until cancelled; one that has to be tried again holds up no other."""
        while True:
            await self._arrived.wait()
            self._arrived = trio.Event()
            if await self._round():
                await trio.sleep(RETRY_BACKOFF_S)
                self._arrived.set()

    async def _round(self) -> bool:
        """Serves those that there are; whether some are to be tried again, which are there behind it."""
        proposals, self._proposals = self._proposals, []
        again = await self._commit(proposals)
        self._proposals = again + self._proposals
        return bool(again)

    async def _commit(self, proposals: list[IsrProposal]) -> list[IsrProposal]:
        """One commit of all that is valid. Returns the proposals to try again."""
        image = self._store.image
        accepted: list[tuple[IsrProposal, PartitionChanged | None]] = []
        retried = []
        for proposal in proposals:
            try:
                accepted.append((proposal, alter_partition(image, self._broker_id, proposal)))
            except KafkaError as error:
                if error.code is ErrorCode.NOT_CONTROLLER:
                    retried.append(proposal)
                else:
                    proposal.refused(error.code)
        if not accepted:
            return retried
        changes = [change for _, change in accepted if change is not None]
        try:
            committed = await self._store.commit(changes, expected_version=image.version)
        except (VersionConflict, KafkaError) as error:
            if not isinstance(error, VersionConflict):
                logger.warning("the ISR could not be changed, trying again: %s", error)
            return retried + [proposal for proposal, _ in accepted]
        for proposal, _ in accepted:
            topic = committed.topic_by_id(proposal.topic_id)
            if topic is None or proposal.index >= len(topic.partitions):
                proposal.refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                proposal.committed(topic.partitions[proposal.index])
        return retried
