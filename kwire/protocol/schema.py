"""How a message of the protocol is declared.

    class FetchPartition(Struct):
        partition: int = field(INT32, "0+")
        current_leader_epoch: int = field(INT32, "9+", default=-1, ignorable=True)

A `Struct` is a small class with slots, a keyword-only `__init__` with the declared defaults, `==` and `repr`. A
`Message` is a struct at the top: a request, a response, the key or value of a coordinator's record, or data that
clients hand through. Nothing here knows bytes: `kwire.protocol.codec` does.

Importing a module of declarations must stay cheap, since a broker imports them one by one while it serves its first
requests. So version ranges are kept as text, and a class gets its real `__init__` when its first instance is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from kwire.protocol.types import Array, WireType

NEVER = 1 << 15
"""`flexible_from` of a message without flexible versions: greater than any version."""

NO_KEY = -1
"""`api_key` of data that belongs to no API and no type of record, as Kafka has it."""

_UNSET: Any = object()


def parse_versions(text: str) -> range:
    """The versions written as `3`, `3-5` (both included) or `3+`; none for the empty text."""
    if not text:
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), NEVER)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


class Field:
    """One field of a struct, as declared by `field`."""

    __slots__ = ("default", "ignorable", "kind", "name", "nullable_text", "tag", "versions_text")

    name: str
    kind: WireType | Array | type[Struct]

    def __init__(
        self,
        kind: WireType | Array | type[Struct],
        versions: str,
        nullable: str,
        default: Any,
        tag: int | None,
        ignorable: bool,
    ) -> None:
        self.kind = kind
        self.versions_text = versions
        self.nullable_text = nullable
        self.default = default
        self.tag = tag
        self.ignorable = ignorable

    @property
    def versions(self) -> range:
        """The versions of the message that have this field."""
        return parse_versions(self.versions_text)

    @property
    def nullable(self) -> range:
        """The versions in which the field may be null."""
        return parse_versions(self.nullable_text)

    @property
    def has_mutable_default(self) -> bool:
        """Whether the default is a list or a struct, which every instance needs for itself."""
        return self.default is _UNSET

    def new_default(self) -> Any:
        """The declared default; a list or a struct is made anew at every call."""
        if self.default is not _UNSET:
            return self.default
        return [] if isinstance(self.kind, Array) else self.kind()  # type: ignore[operator]


def field(
    kind: WireType | Array | type[Struct],
    versions: str,
    *,
    nullable: str = "",
    default: Any = _UNSET,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """Declares a field.

    `versions` has the field, `nullable` allows null in it: ranges like `3+`, `2-7` or `4`. The default is the type's
    zero (an empty list, a struct of defaults) unless given. With a `tag`, it travels as a tagged field (KIP-482). An
    `ignorable` field may be dropped when the version lacks it; any other must then hold its default.
    """
    if default is _UNSET and isinstance(kind, WireType):
        default = kind.zero
    return Field(kind, versions, nullable, default, tag, ignorable)


def _first_init(self: Struct, **values: Any) -> None:
    """Stands in until the first instance is made, then puts the class's own `__init__` in its place."""
    cls = self.__class__
    cls.__init__ = init = _compile_init(cls)  # type: ignore[method-assign]
    init(self, **values)


def _compile_init(cls: type[Struct]) -> Any:
    scope: dict[str, Any] = {"UNSET": _UNSET}
    parameters, body = [], []
    for item in cls.declared_fields:
        name = item.name
        if item.has_mutable_default:
            scope[f"new_{name}"] = list if isinstance(item.kind, Array) else item.kind
            parameters.append(f"{name}=UNSET")
            body.append(f"    self.{name} = new_{name}() if {name} is UNSET else {name}\n")
        else:
            scope[f"default_{name}"] = item.default
            parameters.append(f"{name}=default_{name}")
            body.append(f"    self.{name} = {name}\n")
    signature = ", ".join(["self, *", *parameters, "unknown_tags=None"])
    exec(f"def __init__({signature}):\n{''.join(body)}    self.unknown_tags = unknown_tags\n", scope)
    return scope["__init__"]


@dataclass_transform(kw_only_default=True)
class _StructMeta(type):
    """Collects the declared fields of a class body, and gives them slots."""

    def __new__(mcls, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any) -> _StructMeta:
        fields = []
        for key, value in list(body.items()):
            if value.__class__ is Field:
                value.name = key
                fields.append(value)
                del body[key]
        body.setdefault("__slots__", tuple([item.name for item in fields]))
        body["declared_fields"] = tuple(fields)
        body["__init__"] = _first_init
        return super().__new__(mcls, name, bases, body, **options)


class Struct(metaclass=_StructMeta):
    """A group of fields. Attributes are the protocol's field names in snake_case.

    `unknown_tags` keeps tagged fields that the declaration does not know, by tag; None where there are none.
    """

    __slots__ = ("unknown_tags",)

    if TYPE_CHECKING:
        unknown_tags: dict[int, bytes] | None = None
        declared_fields: ClassVar[tuple[Field, ...]]

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        if self.unknown_tags != other.unknown_tags:
            return False
        return all(getattr(self, item.name) == getattr(other, item.name) for item in self.declared_fields)

    def __repr__(self) -> str:
        values = [f"{item.name}={getattr(self, item.name)!r}" for item in self.declared_fields]
        if self.unknown_tags is not None:
            values.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{self.__class__.__name__}({', '.join(values)})"


class Message(Struct):
    """A struct at the top.

    `api_key` is the API of a request or a response, the record type of a coordinator's record, else NO_KEY.
    `flexible_from` is the first version with compact lengths and tagged fields (KIP-482), NEVER where none has them.
    """

    api_key: ClassVar[int]
    min_version: ClassVar[int]
    max_version: ClassVar[int]
    flexible_from: ClassVar[int]

    def __init_subclass__(cls, *, api_key: int = NO_KEY, versions: str, flexible_from: int = NEVER) -> None:
        cls.api_key = api_key
        every = parse_versions(versions)
        cls.min_version = every[0]
        cls.max_version = every[-1]
        cls.flexible_from = flexible_from
