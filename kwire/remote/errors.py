"""What goes wrong with remote storage.

RemoteStorageError                 retriable or not, as the instance says
├── ObjectNotFound                 no: there is no object of that key
├── AccessDenied                   no: the store knows this broker not, or does not let it do that
├── RemoteStorageTimeout           yes: no answer in the time that the configuration gives; it may have been done
└── RemoteStorageUnavailable       yes: refused for now, or the connection failed; it may have been done
"""

from __future__ import annotations


class RemoteStorageError(Exception):
    """A call of an object store failed. The message is one line, without secrets.

    `retriable`: whether the same call may succeed later. The store itself has tried again by then, as often and as long
    as its configuration says.
    """

    def __init__(self, message: str, *, retriable: bool = False) -> None:
        super().__init__(message)
        self.retriable = retriable


class ObjectNotFound(RemoteStorageError):
    """There is no object of that key."""


class AccessDenied(RemoteStorageError):
    """The credentials are not good, or not good for this."""


class RemoteStorageTimeout(RemoteStorageError):
    """The store did not answer in time. What was asked for may have been done, or may still be done."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retriable=True)


class RemoteStorageUnavailable(RemoteStorageError):
    """The store cannot be reached, or says that it cannot serve now. What was asked for may have been done."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retriable=True)
