"""What an error of obstore's means.

obstore gives a class for some, and for all a text: a line, and below it the error as Rust's debug format shows it. What
the server answered stands in the line, why there was no answer in what is below.
"""

from __future__ import annotations

import re

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from kwire.remote.errors import (
    AccessDenied,
    ObjectNotFound,
    RemoteStorageError,
    RemoteStorageTimeout,
    RemoteStorageUnavailable,
)

LONGEST_REASON = 300
"""Characters of a server's answer that are passed on."""

OUT_OF_RANGE = 416

_STATUS = re.compile(r"status code: (\d{3})([^:\n]*)")
_CODE = re.compile(r"<Code>([^<]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_REFUSED_DELETION = re.compile(r"DeleteObjects request failed for key ([^:\n]*): (.*) \(code: (\w+)\)")
_CAUSE = re.compile(r'(?:message|error): "([^"]+)"')
_METADATA_SERVICE = re.compile(r"performing \w+ http://[^/ ]+/latest/(?:api/token|meta-data)")

_BAD_SCHEME = "source: BadScheme"

_DENIED = frozenset({"AccessDenied", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"})
"""Codes about credentials, for which obstore has no class where the status is 400 or one key of many was refused."""
_TRY_AGAIN = frozenset({"RequestTimeout", "OperationAborted", "NoSuchUpload", "InvalidPart"})
"""Codes below 500 after which the same call may do: NoSuchUpload and InvalidPart meet a whole upload, not a part."""


def status(error: BaseException) -> int | None:
    """The HTTP status of the server's last answer; None where there was none."""
    found = _STATUS.search(_line(error))
    return int(found[1]) if found else None


def meaning(error: BaseException, operation: str, key: str) -> RemoteStorageError:
    """The error to raise where `operation` of `key` failed so."""
    line, code, number = _line(error), _code(error), status(error)
    message = f"{operation} {key}: {_reason(error)}"
    if _METADATA_SERVICE.search(line):
        return RemoteStorageUnavailable(
            f"{operation} {key}: no credentials are set, and the machine has none to give: {_reason(error)}"
        )
    if code in _TRY_AGAIN:
        return RemoteStorageUnavailable(message)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or code in _DENIED:
        return AccessDenied(message)
    if isinstance(error, FileNotFoundError) and operation in ("get", "size") and code in (None, "NoSuchKey"):
        return ObjectNotFound(message)
    if number is not None:
        passing = number >= 500 or number in (408, 409, 429)
        return RemoteStorageUnavailable(message) if passing else RemoteStorageError(message)
    if "kind: Timeout" in str(error):
        return RemoteStorageTimeout(message)
    if _BAD_SCHEME in str(error) or not isinstance(error, BaseError):
        return RemoteStorageError(message)
    return RemoteStorageUnavailable(message)


def _line(error: BaseException) -> str:
    return str(error).partition("\n\nDebug source:")[0]


def _code(error: BaseException) -> str | None:
    if refused := _REFUSED_DELETION.search(_line(error)):
        return refused[3]
    found = _CODE.search(_line(error))
    return found[1] if found else None


def _reason(error: BaseException) -> str:
    """Why, in a line without secrets: an answer that a server refuses a signature with repeats what was signed."""
    line, code, answered = _line(error), _code(error), _STATUS.search(_line(error))
    if refused := _REFUSED_DELETION.search(line):
        reason = f"{refused[1]}: {refused[3]}: {refused[2]}"
    elif code is not None:
        said = _MESSAGE.search(line)
        reason = f"{code}: {said[1]}" if said and said[1] else code
    elif answered is not None:
        reason = f"the server answered {answered[1]}{answered[2]}"
    elif "kind: Timeout" in str(error):
        reason = "no answer in time"
    elif _BAD_SCHEME in str(error):
        reason = "an endpoint without TLS must be set as storage.s3.endpoint.url, not in the environment"
    elif "InvalidMessage(" in str(error):
        reason = "the server does not speak TLS"
    elif "InvalidCertificate(" in str(error):
        reason = "the server's certificate is not valid, or nobody trusted has signed it"
    else:
        cause = _CAUSE.search(str(error))
        reason = cause[1] if cause else line.rpartition(" - ")[2]
    return " ".join(reason.split())[:LONGEST_REASON]
