"""`kwire topics`, against a scripted broker."""

from __future__ import annotations

import json

import pytest

from kwire.protocol.errors import ErrorCode
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
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kwire.protocol.messages.list_offsets import ListOffsetsRequest
from kwire.protocol.messages.metadata import MetadataRequest
from tests.cli.conftest import at_home
from tests.client.scripted_broker import metadata
from tests.client.test_client import listed


def created(error: ErrorCode = ErrorCode.NONE) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(name="new", error_code=error, error_message="as said")])


def test_create(kwire_at, broker) -> None:
    broker.on(CreateTopicsRequest, created())
    result = kwire_at("topics", "create", "a", "b", "-p", "3", "-r", "2", "-c", "x=1", "--config", "y=2=3")
    assert (result.exit_code, result.output) == (0, "")
    asked = [request.topics[0] for request in broker.got(CreateTopicsRequest)]
    assert [(topic.name, topic.num_partitions, topic.replication_factor) for topic in asked] == [
        ("a", 3, 2),
        ("b", 3, 2),
    ]
    assert [(config.name, config.value) for config in asked[0].configs] == [("x", "1"), ("y", "2=3")]
    assert set(broker.client_ids) == {"kwire-cli"}


def test_create_leaves_numbers_to_the_broker(kwire_at, broker) -> None:
    broker.on(CreateTopicsRequest, created())
    kwire_at("topics", "create", "a", "--validate-only")
    (request,) = broker.got(CreateTopicsRequest)
    assert (request.topics[0].num_partitions, request.topics[0].replication_factor) == (-1, -1)
    assert request.validate_only


def test_create_with_an_assignment(kwire_at, broker) -> None:
    broker.on(CreateTopicsRequest, created())
    kwire_at("topics", "create", "a", "--assignment", "1:2,2:1")
    (topic,) = broker.got(CreateTopicsRequest)[0].topics
    assert [item.broker_ids for item in topic.assignments] == [[1, 2], [2, 1]]


def test_create_what_exists(kwire_at, broker) -> None:
    broker.on(CreateTopicsRequest, created(ErrorCode.TOPIC_ALREADY_EXISTS))
    result = kwire_at("topics", "create", "new")
    assert result.exit_code == 1
    assert result.stderr == "kwire: TOPIC_ALREADY_EXISTS: as said (--if-not-exists makes that no error)\n"
    assert kwire_at("topics", "create", "new", "--if-not-exists").exit_code == 0


def test_list(kwire_at, broker) -> None:
    response = metadata({"b": [1], "__internal": [1, 1]})
    response.topics[1].is_internal = True
    broker.on(MetadataRequest, lambda request: at_home(broker, response))
    assert kwire_at("topics", "list").stdout == "__internal\t2\t1\nb\t1\t1\n"
    assert kwire_at("topics", "list", "--exclude-internal").stdout == "b\t1\t1\n"
    (topic,) = json.loads(kwire_at("topics", "list", "--exclude-internal", "--format", "json").stdout)
    assert topic == {
        "name": "b",
        "id": "AAECAwQFBgcICQoLDA0ODw",
        "internal": False,
        "partitions": 1,
        "replication_factor": 1,
    }


@pytest.fixture
def configs(broker) -> None:
    values = [("min.insync.replicas", "1", 5), ("retention.ms", "7", 1)]
    broker.on(
        DescribeConfigsRequest,
        DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    resource_type=2,
                    resource_name="t",
                    configs=[
                        DescribeConfigsResourceResult(name=name, value=value, config_source=source)
                        for name, value, source in values
                    ],
                )
            ]
        ),
    )


@pytest.mark.usefixtures("configs")
def test_describe(kwire_at, broker) -> None:
    broker.on(ListOffsetsRequest, listed)
    assert kwire_at("topics", "describe", "t").stdout == "t\t0\t1\t1\t1\nt\t1\t1\t1\t1\n"
    assert kwire_at("topics", "describe", "t", "--offsets").stdout.splitlines()[1] == "t\t1\t1\t1\t1\t998\t999"
    (topic,) = json.loads(kwire_at("topics", "describe", "t", "--format", "json", "--offsets").stdout)
    assert topic["configs"] == {"retention.ms": "7"}
    assert topic["partition_details"][1] == {
        "partition": 1,
        "leader": 1,
        "leader_epoch": -1,
        "replicas": [1],
        "isr": [1],
        "offline": [],
        "start_offset": 998,
        "end_offset": 999,
    }
    (topic,) = json.loads(kwire_at("topics", "describe", "t", "--format", "json", "--all-configs").stdout)
    assert topic["configs"] == {"min.insync.replicas": "1", "retention.ms": "7"}


def test_describe_what_is_not_there(kwire_at, broker) -> None:
    missing = metadata({"x": []}, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    broker.on(MetadataRequest, lambda request: at_home(broker, missing))
    result = kwire_at("topics", "describe", "x")
    assert result.exit_code == 1
    assert result.stderr.startswith("kwire: UNKNOWN_TOPIC_OR_PARTITION: topic 'x' (not there: `kwire topics list`")
    assert result.stderr.count("\n") == 1


def test_alter(kwire_at, broker) -> None:
    broker.on(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse())
    broker.on(
        CreatePartitionsRequest, CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name="t", error_code=0)])
    )
    assert kwire_at("topics", "alter", "t", "-c", "a=1", "--delete-config", "b", "-p", "4").exit_code == 0
    changes = broker.got(IncrementalAlterConfigsRequest)[0].resources[0].configs
    assert [(item.name, item.config_operation, item.value) for item in changes] == [("a", 0, "1"), ("b", 1, None)]
    assert broker.got(CreatePartitionsRequest)[0].topics[0].count == 4


def test_delete(kwire_at, broker) -> None:
    broker.on(DeleteTopicsRequest, DeleteTopicsResponse())
    assert kwire_at("topics", "delete", "a", "b").exit_code == 0
    assert [request.topics[0].name for request in broker.got(DeleteTopicsRequest)] == ["a", "b"]
    gone = DeletableTopicResult(name="a", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    broker.on(DeleteTopicsRequest, DeleteTopicsResponse(responses=[gone]))
    assert kwire_at("topics", "delete", "a").exit_code == 1
    assert kwire_at("topics", "delete", "a", "--if-exists").exit_code == 0
