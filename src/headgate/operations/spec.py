"""Names and specs: the description of an operation without its code, convertible to JSON and back.

The key of an operation is ``(namespace, local name)``. ``github/list_issues``, ``/github/list_issues`` and
``github.list_issues`` are the same operation; a local name may hold dots, a namespace may not.

A spec holds no callable and no secret, so it may be sent, stored and compared. It is frozen, and its schemas
are copied at construction, so that later changes to the originals do not reach it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from headgate.errors import RegistrationInvalid


def _no_resources() -> dict[str, frozenset[str]]:
    return {}


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated caller: its scopes, and the actions it may take on resources.

    A resource is named ``type:id``, ``type:*`` or plain ``type``.
    """

    id: str
    scopes: frozenset[str] = frozenset()
    resources: Mapping[str, frozenset[str]] = field(default_factory=_no_resources)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", frozenset(self.scopes))
        frozen = {key: frozenset(actions) for key, actions in self.resources.items()}
        object.__setattr__(self, "resources", frozen)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControl:
    """What an identity must hold; the default requires nothing, not even an identity."""

    #: All of these.
    required_scopes: tuple[str, ...] = ()
    #: At least one of these.
    required_scopes_any: tuple[str, ...] = ()
    resource_type: str | None = None
    resource_action: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "required_scopes", tuple(self.required_scopes))
        object.__setattr__(self, "required_scopes_any", tuple(self.required_scopes_any))
        if self.resource_action is not None and self.resource_type is None:
            raise RegistrationInvalid("A resource action needs a resource type.", param="resource_action")

    @property
    def is_open(self) -> bool:
        """Whether every caller passes, including an anonymous one."""
        return not (self.required_scopes or self.required_scopes_any or self.resource_type)


#: Requires nothing.
OPEN = AccessControl()


def refusal(
    access: AccessControl, identity: Identity | None, *, resource_id: str | None = None
) -> str | None:
    """Return why this identity is refused, or None if it is allowed.

    With a resource id only that resource counts, or the wildcard; without one any of the type does.
    """
    if access.is_open:
        return None
    if identity is None:
        return "Authentication is required."
    for scope in access.required_scopes:
        if scope not in identity.scopes:
            return f"The scope '{scope}' is required."
    if access.required_scopes_any and identity.scopes.isdisjoint(access.required_scopes_any):
        return f"One of the scopes {_listed(access.required_scopes_any)} is required."
    return _resource_refusal(access, identity, resource_id)


def _resource_refusal(access: AccessControl, identity: Identity, resource_id: str | None) -> str | None:
    kind, action = access.resource_type, access.resource_action
    if kind is None:
        return None
    for key, actions in identity.resources.items():
        if _names_resource(key, kind, resource_id) and (action is None or action in actions):
            return None
    wanted = f"'{action}' on '{kind}'" if action else f"'{kind}'"
    return f"Access to {wanted} is required."


def _names_resource(key: str, kind: str, resource_id: str | None) -> bool:
    held_kind, separator, held_id = key.partition(":")
    if held_kind != kind:
        return False
    return resource_id is None or not separator or held_id == "*" or (held_id == resource_id != "")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


OperationKey: TypeAlias = tuple[str, str]


def check_namespace(namespace: str) -> str:
    """Return the namespace if it is valid.

    Raises:
        RegistrationInvalid: it is empty, has blanks at its ends, or holds a separator.
    """
    if not namespace or namespace != namespace.strip() or "/" in namespace or "." in namespace:
        raise RegistrationInvalid(
            "A namespace is not empty and holds neither '.' nor '/'.", param="namespace"
        )
    return namespace


def local_name(namespace: str, name: str) -> str:
    """Take the namespace off a name that carries it as a prefix."""
    return name.removeprefix(namespace + "/")


def operation_id(namespace: str, name: str) -> str:
    """Write the canonical id of an operation."""
    return f"{namespace}/{local_name(namespace, name)}"


def parse_operation_id(text: str) -> OperationKey:
    """Read any spelling of an id; text that is no id gives a key that matches nothing."""
    bare = text.removeprefix("/")
    separator = "/" if "/" in bare else "."
    namespace, _, name = bare.partition(separator)
    return namespace, name


#: A JSON Schema; ``{}`` and ``True`` allow everything.
JsonSchema: TypeAlias = dict[str, Any] | bool


class OperationType(StrEnum):
    """Whether an operation reads or writes."""

    QUERY = "query"
    MUTATION = "mutation"


class Visibility(StrEnum):
    """Who can reach an operation: callers from outside, or only other operations."""

    EXTERNAL = "external"
    INTERNAL = "internal"


class OutputKind(StrEnum):
    """Where the output schema comes from; only a declared one is used to normalise."""

    DECLARED = "declared"
    #: A list of MCP content blocks, because the tool declares no output schema.
    CONTENT_BLOCKS = "content_blocks"
    UNKNOWN = "unknown"
    #: Of one envelope: structured output of a tool that declares no output schema.
    STRUCTURED_UNDECLARED = "structured_undeclared"


@dataclass(frozen=True, slots=True)
class ErrorDefinition:
    """A failure an operation declares; the schema describes ``CallError.details``."""

    code: str
    description: str = ""
    _: KW_ONLY
    schema: JsonSchema = True
    http_status: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", copy.deepcopy(self.schema))

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form."""
        wire: dict[str, Any] = {"code": self.code, "description": self.description, "schema": self.schema}
        return wire if self.http_status is None else {**wire, "http_status": self.http_status}


def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class OperationSpec:
    """The description of one operation.

    Operations are internal by default; making one reachable from outside is an explicit decision.
    """

    #: The bare name, or ``namespace/name``; both are found the same way.
    name: str
    namespace: str
    _: KW_ONLY
    op_type: OperationType
    version: str = "1.0.0"
    visibility: Visibility = Visibility.INTERNAL
    title: str | None = None
    description: str = ""
    tags: tuple[str, ...] = ()
    input_schema: JsonSchema = True
    output_schema: JsonSchema = True
    #: None derives it from the output schema.
    output_kind: OutputKind | None = None
    error_schemas: tuple[ErrorDefinition, ...] = ()
    access_control: AccessControl = OPEN
    #: ``$.field``: where the input names the resource that access control is about.
    resource_id_path: str | None = None
    meta: Mapping[str, Any] = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        check_namespace(self.namespace)
        if not self.local_name:
            raise RegistrationInvalid("An operation needs a name.", param="name")
        fixed = {
            "op_type": OperationType(self.op_type),
            "visibility": Visibility(self.visibility),
            "tags": tuple(self.tags),
            "input_schema": copy.deepcopy(self.input_schema),
            "output_schema": copy.deepcopy(self.output_schema),
            "output_kind": _output_kind(self.output_schema, self.output_kind),
            "error_schemas": tuple(self.error_schemas),
            "meta": copy.deepcopy(dict(self.meta)),
        }
        for name, value in fixed.items():
            object.__setattr__(self, name, value)

    @property
    def local_name(self) -> str:
        """The name without its namespace."""
        return local_name(self.namespace, self.name)

    @property
    def key(self) -> OperationKey:
        """What the registry looks an operation up by."""
        return self.namespace, self.local_name

    @property
    def id(self) -> str:
        """The canonical spelling: ``namespace/name``."""
        return f"{self.namespace}/{self.local_name}"

    def to_dict(self) -> dict[str, Any]:
        """Return the whole spec as JSON; discovery decides what outsiders see of it."""
        access = self.access_control
        return {
            "name": self.name,
            "namespace": self.namespace,
            "version": self.version,
            "op_type": str(self.op_type),
            "visibility": str(self.visibility),
            "title": self.title,
            "description": self.description,
            "tags": list(self.tags),
            "input_schema": copy.deepcopy(self.input_schema),
            "output_schema": copy.deepcopy(self.output_schema),
            "output_kind": str(self.output_kind),
            "error_schemas": [error.to_dict() for error in self.error_schemas],
            "access_control": {
                "required_scopes": list(access.required_scopes),
                "required_scopes_any": list(access.required_scopes_any),
                "resource_type": access.resource_type,
                "resource_action": access.resource_action,
            },
            "resource_id_path": self.resource_id_path,
            "_meta": copy.deepcopy(dict(self.meta)),
        }


def _output_kind(schema: JsonSchema, kind: OutputKind | None) -> OutputKind:
    # An empty schema allows everything, whatever kind is named.
    if schema is True or schema == {}:
        return OutputKind.UNKNOWN
    return OutputKind.DECLARED if kind is None else OutputKind(kind)
