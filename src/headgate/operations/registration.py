"""Registrations: an operation's spec with its handler, provenance, secrets and policies.

A registration is immutable. Adapters make them and applications register them; nothing here runs one.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from headgate.errors import RegistrationInvalid
from headgate.operations.access import AccessControl, Identity
from headgate.operations.context import OperationContext
from headgate.operations.names import OperationKey, operation_id, parse_operation_id
from headgate.operations.secrets import NO_CAPABILITIES, Capabilities
from headgate.operations.spec import OperationSpec, OperationType, Visibility
from headgate.schema.check import CompiledSchema

if TYPE_CHECKING:
    # Only for annotations: binding imports this module at run time.
    from headgate.operations.binding import Bound

#: Takes the input and the context; returns a value or an envelope.
Handler: TypeAlias = Callable[[Any, OperationContext], Awaitable[Any]]
#: The same for a subscription: yields many.
StreamHandler: TypeAlias = Callable[[Any, OperationContext], AsyncIterator[Any]]

_T = TypeVar("_T")


class Provenance(StrEnum):
    """Where a registration came from; only code of this process composes."""

    LOCAL = "local"
    FROM_OPENAPI = "from_openapi"
    FROM_MCP = "from_mcp"
    FROM_CALL = "from_call"
    FROM_JSON_SCHEMA = "from_json_schema"
    #: Made at run time inside a session; never visible outside.
    SESSION = "session"

    @property
    def is_leaf(self) -> bool:
        """Whether it calls out and never composes."""
        # Compared one by one: it runs several times in every call, and hashing an enum is slow.
        return self is not Provenance.LOCAL and self is not Provenance.SESSION


class OutputPolicy(StrEnum):
    """What happens to an output that breaks its schema."""

    #: The data is returned and its issues are listed.
    FLAG = "flag"
    #: The call fails.
    STRICT = "strict"
    #: The output is not checked.
    OFF = "off"


def _no_resources() -> dict[str, frozenset[str]]:
    return {}


@dataclass(frozen=True, slots=True)
class CompositionAuthority:
    """The identity a composing handler uses to call other operations, instead of its caller's."""

    label: str
    scopes: frozenset[str] = frozenset()
    resources: Mapping[str, frozenset[str]] = field(default_factory=_no_resources)

    def as_identity(self) -> Identity:
        """Return the identity that access control of the called operations checks."""
        return Identity(self.label, self.scopes, self.resources)


@dataclass(frozen=True, slots=True)
class ScopedEnv:
    """The operations a handler may call, by id or namespace; all others appear not to exist."""

    allowed_ops: frozenset[str] = frozenset()
    allowed_namespaces: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        canonical = frozenset(operation_id(*parse_operation_id(text)) for text in self.allowed_ops)
        object.__setattr__(self, "allowed_ops", canonical)
        object.__setattr__(self, "allowed_namespaces", frozenset(self.allowed_namespaces))

    def allows(self, key: OperationKey) -> bool:
        """Return whether the handler may call this operation."""
        return key[0] in self.allowed_namespaces or operation_id(*key) in self.allowed_ops


class _OfSpec(Generic[_T]):
    """Makes an attribute of the spec readable on the registration."""

    def __init__(self, read: Callable[[OperationSpec], _T]) -> None:
        self.read = read

    def __get__(self, registration: HandlerRegistration | None, owner: type) -> _T:
        if registration is None:
            raise AttributeError("Ask a registration, not the class.")
        return self.read(registration.spec)


@dataclass(frozen=True, slots=True)
class CompiledSchemas:
    """Schemas of one spec that an adapter has compiled; each is used only for the schema it was made from."""

    input: CompiledSchema
    output: CompiledSchema | None
    #: By error code.
    errors: Mapping[str, CompiledSchema]


@dataclass(frozen=True, slots=True)
class HandlerRegistration:
    """A spec and its handler; the attributes of the spec are readable here too."""

    spec: OperationSpec
    handler: Handler | StreamHandler
    _: KW_ONLY
    provenance: Provenance = Provenance.LOCAL
    composition_authority: CompositionAuthority | None = None
    scoped_env: ScopedEnv | None = None
    capabilities: Capabilities = NO_CAPABILITIES
    output_policy: OutputPolicy = OutputPolicy.FLAG
    #: Whether declared defaults are put into the input; not for imports, whose server applies them.
    apply_input_defaults: bool = True
    #: Schemas of the spec that are compiled already, so that registering an import costs little.
    compiled: CompiledSchemas | None = None
    #: Whether the handler yields many results; None derives it from the handler.
    is_streaming: bool | None = None

    name = _OfSpec(lambda spec: spec.name)
    namespace = _OfSpec(lambda spec: spec.namespace)
    local_name = _OfSpec(lambda spec: spec.local_name)
    key = _OfSpec(lambda spec: spec.key)
    id = _OfSpec(lambda spec: spec.id)
    version = _OfSpec(lambda spec: spec.version)
    op_type = _OfSpec(lambda spec: spec.op_type)
    visibility = _OfSpec(lambda spec: spec.visibility)
    title = _OfSpec(lambda spec: spec.title)
    description = _OfSpec(lambda spec: spec.description)
    tags = _OfSpec(lambda spec: spec.tags)
    input_schema = _OfSpec(lambda spec: spec.input_schema)
    output_schema = _OfSpec(lambda spec: spec.output_schema)
    output_kind = _OfSpec(lambda spec: spec.output_kind)
    error_schemas = _OfSpec(lambda spec: spec.error_schemas)
    access_control = _OfSpec(lambda spec: spec.access_control)
    resource_id_path = _OfSpec(lambda spec: spec.resource_id_path)
    meta = _OfSpec(lambda spec: spec.meta)

    def __post_init__(self) -> None:
        streams = _yields(self.handler) if self.is_streaming is None else self.is_streaming
        object.__setattr__(self, "is_streaming", streams)
        problem = _problem(self)
        if problem:
            raise RegistrationInvalid(f"{self.spec.id}: {problem}")

    def bind(self, model: type[_T]) -> Bound[_T]:
        """Return a callable that runs this operation and returns a model.

        A caller that holds the registration may run it, even an internal one, without a registry.

        Raises:
            RegistrationInvalid: the operation composes others, so it needs its registry.
        """
        from headgate.operations.binding import Bound  # noqa: PLC0415 - binding runs registrations: it imports this

        return Bound(self, model)


@runtime_checkable
class OperationAdapter(Protocol):
    """Turns a remote service into registrations; registers nothing itself."""

    async def import_operations(self) -> Sequence[HandlerRegistration]:
        """Import the service.

        Raises:
            AdapterError: the service could not be imported.
        """
        ...


def expose(registration: HandlerRegistration, *, access_control: AccessControl) -> HandlerRegistration:
    """Return a registration that outside callers reach if its access control allows them.

    Each operation is exposed explicitly, and always with an access control.
    """
    spec = replace(registration.spec, visibility=Visibility.EXTERNAL, access_control=access_control)
    return replace(registration, spec=spec)


def _yields(handler: Handler | StreamHandler) -> bool:
    # An object with an async generator as its __call__ streams too.
    return inspect.isasyncgenfunction(handler) or inspect.isasyncgenfunction(type(handler).__call__)


def _problem(registration: HandlerRegistration) -> str | None:
    is_subscription = registration.spec.op_type is OperationType.SUBSCRIPTION
    composes = registration.composition_authority is not None or registration.scoped_env is not None
    if is_subscription and not registration.is_streaming:
        return "a subscription needs a handler that is an async generator."
    if registration.is_streaming and not is_subscription:
        return "only a subscription may have a handler that is an async generator."
    if registration.provenance.is_leaf and composes:
        return "an imported operation composes nothing, so it has neither authority nor env."
    if registration.provenance is Provenance.SESSION and registration.spec.visibility is Visibility.EXTERNAL:
        return "an operation of a session is never visible outside."
    return None
