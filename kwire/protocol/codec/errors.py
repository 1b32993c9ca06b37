"""What can go wrong between a message and its bytes."""

from __future__ import annotations


class MalformedError(ValueError):
    """Bytes that are not the message they claim to be. Kafka closes the connection they came by."""


class EncodeError(ValueError):
    """A message that cannot be written: a value outside its type's range, or null where null is not allowed."""


class UnsupportedFieldError(EncodeError):
    """A field holds a value that the version asked for cannot carry, and may not be dropped silently."""


class UnsupportedVersionError(ValueError):
    """The message has no such version."""
