"""What lies in remote storage, by what the brokers keep account of in `__remote_log_metadata`."""

from __future__ import annotations

from kwire.client.client import Client
from kwire.client.consumer import Consumer
from kwire.client.offsets import EARLIEST, LATEST, list_offsets
from kwire.metadata.names import REMOTE_LOG_METADATA
from kwire.storage.tiered.account import RemoteAccount


async def remote_account(client: Client) -> RemoteAccount:
    """Reads the whole topic; an empty account where there is none. Raises KafkaError, ClientError, ValueError."""
    account = RemoteAccount()
    await client.refresh([REMOTE_LOG_METADATA])
    topic = client.metadata.topics.get(REMOTE_LOG_METADATA)
    if topic is None:
        return account
    partitions = [(REMOTE_LOG_METADATA, index) for index in range(len(topic.partitions))]
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    consumer = Consumer(client)
    await consumer.assign({of: starts[of].offset for of in partitions if starts[of].offset < ends[of].offset})
    while consumer.positions:
        for record in await consumer.poll():
            account.take_up(record.value or b"")
        for of in [of for of, position in consumer.positions.items() if position >= ends[of].offset]:
            consumer.unassign(of)
    return account
