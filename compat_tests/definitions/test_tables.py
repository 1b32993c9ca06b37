"""kwire's errors and headers are those of Apache Kafka, whose tables small Java programs print."""

from __future__ import annotations

import subprocess
from pathlib import Path

from jvm import apache_kafka, maven
from kwire.protocol.api_keys import APIS
from kwire.protocol.codec.build import api_messages
from kwire.protocol.errors import ErrorCode
from kwire.protocol.headers import RequestHeader, encode_request_header, response_header


def _printed_by(program: str) -> list[str]:
    file = Path(__file__).with_name(program)
    command = [maven.java_program("java"), *apache_kafka.SHORT_LIVED, "-cp", apache_kafka.class_path(), str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_errors_have_kafkas_codes_and_names_and_may_be_retried_where_kafka_says_so() -> None:
    assert _printed_by("ErrorTable.java") == [
        f"{error.value} {error.name} {str(error.retriable).lower()}" for error in ErrorCode
    ]


def test_headers_have_tagged_fields_where_kafka_has_them() -> None:
    """Request header 2 and response header 1 have them, those before do not."""
    kafkas = [line for line in _printed_by("HeaderTable.java") if int(line.split()[0]) in APIS]
    ours = set()
    for message in api_messages():
        for version in range(message.min_version, message.max_version + 1):
            request = len(encode_request_header(RequestHeader(message.api_key, version, 0, None))) - 9
            response = len(response_header(message.api_key, version, 0)) - 4
            ours.add(f"{message.api_key} {version} {request} {response}")
    assert ours == set(kafkas)
