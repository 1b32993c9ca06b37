"""Topics and configs: what is asked of whom, in old and new versions, and what comes back."""

from __future__ import annotations

import pytest

from kwire.client.admin import Admin, ConfigEntry, ConfigSource, ResourceType
from kwire.client.errors import UnsupportedApi
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kwire.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from kwire.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from kwire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kwire.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kwire.protocol.messages.metadata import MetadataRequest
from tests.client.scripted_broker import ScriptedBroker, metadata


@pytest.fixture
def admin(client) -> Admin:
    return Admin(client)


def created(error: int = 0, message: str | None = None) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(name="new", error_code=error, error_message=message)])


async def test_create(admin, broker) -> None:
    broker.on(CreateTopicsRequest, created())
    await admin.create_topic("new", partitions=3, replication_factor=2, configs={"a": "b"}, validate_only=True)
    (request,) = broker.got(CreateTopicsRequest)
    (topic,) = request.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("new", 3, 2)
    assert [(config.name, config.value) for config in topic.configs] == [("a", "b")]
    assert request.validate_only


async def test_create_with_an_assignment(admin, broker) -> None:
    broker.on(CreateTopicsRequest, created())
    await admin.create_topic("new", assignment=[[1, 2], [2, 1]])
    (topic,) = broker.got(CreateTopicsRequest)[0].topics
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
    assert [(item.partition_index, item.broker_ids) for item in topic.assignments] == [(0, [1, 2]), (1, [2, 1])]


async def test_defaults_need_a_broker_that_knows_them(admin, broker) -> None:
    broker.on(CreateTopicsRequest, created(), versions=(0, 3))
    with pytest.raises(UnsupportedApi, match="CreateTopics version 4"):
        await admin.create_topic("new")
    await admin.create_topic("new", partitions=1, replication_factor=1)


async def test_a_refusal_has_the_brokers_message(admin, broker) -> None:
    broker.on(CreateTopicsRequest, created(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'new' already exists."))
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS: Topic 'new' already exists"):
        await admin.create_topic("new")
    assert len(broker.got(CreateTopicsRequest)) == 1


async def test_the_controller_is_asked_and_followed(network, nursery, admin, broker, autojump_clock) -> None:
    other = ScriptedBroker(network.transport("other"), "other", 9093)
    await nursery.start(other.run)
    brokers = {1: ("broker", 9092), 2: ("other", 9093)}
    moved = metadata({}, brokers)
    moved.controller_id = 2
    broker.on(MetadataRequest, [metadata({}, brokers), moved])
    broker.on(CreateTopicsRequest, created(ErrorCode.NOT_CONTROLLER))
    other.on(CreateTopicsRequest, created())
    await admin.create_topic("new")
    assert (len(broker.got(CreateTopicsRequest)), len(other.got(CreateTopicsRequest))) == (1, 1)


@pytest.mark.parametrize("versions", [(1, 5), (1, 6)])
async def test_delete(admin, broker, versions) -> None:
    broker.on(DeleteTopicsRequest, DeleteTopicsResponse(), versions=versions)
    await admin.delete_topics(["a", "b"])
    (request,) = broker.got(DeleteTopicsRequest)
    assert (request.topic_names or [topic.name for topic in request.topics]) == ["a", "b"]


async def test_deleting_what_is_not_there(admin, broker) -> None:
    gone = DeletableTopicResult(name="x", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    broker.on(DeleteTopicsRequest, DeleteTopicsResponse(responses=[gone]))
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION: topic 'x'"):
        await admin.delete_topics(["x"])
    assert len(broker.got(DeleteTopicsRequest)) == 1


async def test_create_partitions(admin, broker) -> None:
    broker.on(
        CreatePartitionsRequest,
        [
            CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name="t")]),
            CreatePartitionsResponse(
                results=[CreatePartitionsTopicResult(name="t", error_code=37, error_message="too few")]
            ),
        ],
    )
    await admin.create_partitions("t", 5)
    assert broker.got(CreatePartitionsRequest)[0].topics[0].count == 5
    with pytest.raises(KafkaError, match="INVALID_PARTITIONS: too few"):
        await admin.create_partitions("t", 1)


async def test_configs(admin, broker) -> None:
    broker.on(
        DescribeConfigsRequest,
        DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    resource_type=2,
                    resource_name="t",
                    configs=[
                        DescribeConfigsResourceResult(name="b", value="2", config_source=1),
                        DescribeConfigsResourceResult(name="a", value=None, config_source=99, is_sensitive=True),
                    ],
                )
            ]
        ),
    )
    assert await admin.describe_configs(ResourceType.TOPIC, "t") == [
        ConfigEntry("a", None, ConfigSource.UNKNOWN, False, True),
        ConfigEntry("b", "2", ConfigSource.TOPIC, False, False),
    ]


async def test_alter_configs(admin, broker) -> None:
    broker.on(
        IncrementalAlterConfigsRequest,
        [
            IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse()]),
            IncrementalAlterConfigsResponse(
                responses=[AlterConfigsResourceResponse(error_code=40, error_message="Unknown topic config name: c")]
            ),
        ],
    )
    await admin.alter_configs(ResourceType.TOPIC, "t", set={"a": "1"}, delete=["b"])
    (resource,) = broker.got(IncrementalAlterConfigsRequest)[0].resources
    assert [(item.name, item.config_operation, item.value) for item in resource.configs] == [
        ("a", 0, "1"),
        ("b", 1, None),
    ]
    with pytest.raises(KafkaError, match="INVALID_CONFIG: Unknown topic config name: c"):
        await admin.alter_configs(ResourceType.TOPIC, "t", set={"c": "1"})


async def test_a_broker_tells_of_itself(network, nursery, admin, broker) -> None:
    other = ScriptedBroker(network.transport("other"), "other", 9093)
    await nursery.start(other.run)
    broker.on(MetadataRequest, metadata({}, {1: ("broker", 9092), 2: ("other", 9093)}))
    for each in (broker, other):
        each.on(DescribeConfigsRequest, DescribeConfigsResponse())
        each.on(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse())
    await admin.describe_configs(ResourceType.BROKER, "2")
    await admin.alter_configs(ResourceType.BROKER, "2", set={"a": "1"})
    await admin.alter_configs(ResourceType.BROKER, "", set={"a": "1"})
    assert len(other.got(DescribeConfigsRequest)) == 1
    assert len(other.got(IncrementalAlterConfigsRequest)) == len(broker.got(IncrementalAlterConfigsRequest)) == 1
    for name in ("3", "x", "\u00b2", "02"):
        with pytest.raises(KafkaError, match=f"no broker '{name}'"):
            await admin.describe_configs(ResourceType.BROKER, name)


async def test_all_topics_in_order(admin, broker) -> None:
    broker.on(MetadataRequest, metadata({"b": [1], "a": [1, 1]}))
    assert [(name, len(topic.partitions)) for name, topic in (await admin.topics()).items()] == [("a", 2), ("b", 1)]


async def test_topics_that_are_gone_are_not_listed(admin, broker) -> None:
    broker.on(MetadataRequest, [metadata({"a": [1], "b": [1]}), metadata({"b": [1]})])
    assert list(await admin.topics()) == ["a", "b"]
    assert list(await admin.topics()) == ["b"]
