"""What errors of obstore's mean, and how that is said."""

from __future__ import annotations

import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PermissionDeniedError, UnauthenticatedError

from kwire.remote.errors import (
    AccessDenied,
    ObjectNotFound,
    RemoteStorageError,
    RemoteStorageTimeout,
    RemoteStorageUnavailable,
)
from kwire.remote.s3_answers import LONGEST_REASON, meaning, status


def answered(number: int, code: str | None = None, message: str = "", words: str = "Words") -> str:
    """As obstore tells of an answer with this status, and this error in its body."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>" if code else ""
    answer = f"Server returned non-2xx status code: {number} {words}: {body}"
    line = f"Generic S3 error: Error performing PUT http://s3/bucket/a in 7ms - {answer}"
    return f"{line}\n\nDebug source:\nGeneric {{\n    status: {number},\n}}"


def refused(code: str, message: str) -> str:
    """As it tells of one key that was not deleted with the others."""
    line = f"DeleteObjects request failed for key b: {message} (code: {code})"
    return f"Generic S3 error: {line}\n\nDebug source:\nGeneric {{}}"


def not_answered(debug: str) -> str:
    line = "Error performing GET http://s3/bucket/a in 7ms - HTTP error: error sending request"
    return f"Generic S3 error: {line}\n\nDebug source:\nGeneric {{\n    {debug}\n}}"


@pytest.mark.parametrize(
    ("error", "expected", "said"),
    [
        (FileNotFoundError(answered(404, "NoSuchKey", "Not there")), ObjectNotFound, "NoSuchKey: Not there"),
        (FileNotFoundError(answered(404)), ObjectNotFound, "the server answered 404 Words"),
        (FileNotFoundError(answered(404, "NoSuchBucket", "None")), RemoteStorageError, "NoSuchBucket: None"),
        (FileNotFoundError(answered(404, "NoSuchUpload")), RemoteStorageUnavailable, "NoSuchUpload"),
        (PermissionDeniedError(answered(403, "AccessDenied", "No")), AccessDenied, "AccessDenied: No"),
        (UnauthenticatedError(answered(401)), AccessDenied, "the server answered 401 Words"),
        (GenericError(answered(400, "ExpiredToken", "Over")), AccessDenied, "ExpiredToken: Over"),
        (GenericError(answered(400, "RequestTimeout", "Idle")), RemoteStorageUnavailable, "RequestTimeout: Idle"),
        (GenericError(answered(400, "InvalidArgument", "?")), RemoteStorageError, "InvalidArgument: ?"),
        (GenericError(answered(301, "PermanentRedirect")), RemoteStorageError, "PermanentRedirect"),
        (AlreadyExistsError(answered(409, "OperationAborted")), RemoteStorageUnavailable, "OperationAborted"),
        (GenericError(answered(429)), RemoteStorageUnavailable, "the server answered 429 Words"),
        (GenericError(answered(500, "InternalError", "Sorry")), RemoteStorageUnavailable, "InternalError: Sorry"),
        (GenericError(answered(503, "SlowDown", "Less")), RemoteStorageUnavailable, "SlowDown: Less"),
        (GenericError(refused("AccessDenied", "No")), AccessDenied, "b: AccessDenied: No"),
        (GenericError(refused("InternalError", "Oh")), RemoteStorageUnavailable, "b: InternalError: Oh"),
        (GenericError(not_answered("kind: Timeout,")), RemoteStorageTimeout, "no answer in time"),
        (GenericError(not_answered('message: "Connection refused",')), RemoteStorageUnavailable, "Connection refused"),
        (GenericError(not_answered('error: "failed to look up",')), RemoteStorageUnavailable, "failed to look up"),
        (
            GenericError(not_answered("source: InvalidCertificate(UnknownIssuer)")),
            RemoteStorageUnavailable,
            "the server's certificate is not valid, or nobody trusted has signed it",
        ),
        (GenericError(not_answered("kind: Unknown,")), RemoteStorageUnavailable, "HTTP error: error sending request"),
        (
            RuntimeError("rust future panicked: unknown error"),
            RemoteStorageError,
            "rust future panicked: unknown error",
        ),
    ],
    ids=lambda value: "" if isinstance(value, BaseException) else str(getattr(value, "__name__", value)),
)
def test_meanings(error: Exception, expected: type[RemoteStorageError], said: str) -> None:
    meant = meaning(error, "get", "a")
    assert type(meant) is expected
    assert str(meant) == f"get a: {said}"
    assert meant.retriable == (expected in (RemoteStorageUnavailable, RemoteStorageTimeout))


def test_an_object_is_missing_only_where_one_is_read() -> None:
    error = FileNotFoundError(answered(404, "NoSuchKey"))
    assert type(meaning(error, "size", "a")) is ObjectNotFound
    assert type(meaning(error, "put", "a")) is RemoteStorageError
    assert type(meaning(error, "list", "a")) is RemoteStorageError


def test_what_is_said_is_a_line_of_bounded_length() -> None:
    said = str(meaning(GenericError(answered(400, "Odd", "one\ntwo   three " + "x" * 1000)), "put", "a"))
    assert said.startswith("put a: Odd: one two three x")
    assert len(said) == LONGEST_REASON + len("put a: ")


def test_status() -> None:
    assert status(GenericError(answered(416, "InvalidRange"))) == 416
    assert status(GenericError(not_answered("kind: Timeout,"))) is None
