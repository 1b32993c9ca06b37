"""The definition of one config key: everything that is known about it."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any, NamedTuple

from kwire.config.types import Type, invalid, parse, to_text
from kwire.config.validity import ListOf, Validity


class Status(Enum):
    """What kwire does with a key."""

    SUPPORTED = "supported"
    """It acts."""
    LATER = "later"
    """Its feature does not exist yet: refused, unless it has its default value."""
    KRAFT = "kraft"
    """It belongs to KRaft: accepted, without effect, named in one warning."""
    MOOT = "moot"
    """It tunes a part of Apache Kafka that kwire has no need of: accepted, without effect, named in one warning."""


class Scope(Enum):
    """Whether and for whom an admin may change the key while the broker runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"
    """For one broker or, as the cluster's default, for all."""


class Importance(IntEnum):
    HIGH = 0
    MEDIUM = 1
    LOW = 2


class ConfigKey(NamedTuple):
    """A key with its type, default and validity. `default` is typed (None: not set), `doc` one sentence."""

    name: str
    type: Type
    default: Any
    status: Status
    importance: Importance
    scope: Scope
    validity: Validity | None
    doc: str
    internal: bool = False
    """Hidden in descriptions unless set."""
    admin_only: bool = False
    """Only an admin sets it (quotas on replication); not read from a file."""

    @property
    def sensitive(self) -> bool:
        """Whether its value is a secret, never shown."""
        return self.type is Type.PASSWORD

    @property
    def default_text(self) -> str | None:
        return to_text(self.default)

    def parse(self, text: str) -> Any:
        """The valid value that `text` means; raises ConfigError."""
        value = parse(self.name, self.type, text)
        if isinstance(self.validity, ListOf):
            value = tuple(dict.fromkeys(value))
        if self.validity is not None:
            self.validity.check(self.name, value)
        return value

    def check_supported(self, value: Any) -> None:
        """Raises ConfigError where the value would need a feature that does not exist yet."""
        if self.status is not Status.LATER:
            return
        needed = tuple(filter(None, value)) if self.type is Type.LIST else value  # an empty item asks for nothing
        if needed != self.default:
            default = f"its default, {self.default_text!r}" if self.default is not None else "it unset"
            raise invalid(self.name, value, f"this version of kwire supports only {default}")


BOOLEAN, STRING, INT, SHORT, LONG = Type.BOOLEAN, Type.STRING, Type.INT, Type.SHORT, Type.LONG
DOUBLE, LIST, CLASS, PASSWORD = Type.DOUBLE, Type.LIST, Type.CLASS, Type.PASSWORD
SUPPORTED, LATER, KRAFT, MOOT = Status.SUPPORTED, Status.LATER, Status.KRAFT, Status.MOOT
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
READ_ONLY, PER_BROKER, CLUSTER_WIDE = Scope.READ_ONLY, Scope.PER_BROKER, Scope.CLUSTER_WIDE

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1
MAX_DOUBLE = 1.7976931348623157e308
