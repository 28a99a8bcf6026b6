"""Registrations: an operation's spec with its handler, provenance, secrets and policies; and what a handler is given.

A registration is immutable. Adapters make them and applications register them; nothing here runs one. A context is
never trusted: the registry accepts none from outside, and only it can mark a call as internal, so a handler gains
nothing by building one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from headgate.errors import RegistrationInvalid, SchemaParse
from headgate.operations.envelope import ResponseEnvelope
from headgate.operations.secrets import NO_CAPABILITIES, Capabilities
from headgate.operations.spec import (
    AccessControl,
    Identity,
    JsonSchema,
    OperationKey,
    OperationSpec,
    Visibility,
    operation_id,
    parse_operation_id,
)
from headgate.schema.check import CompiledSchema, compile_schema
from headgate.schema.guard import FOREIGN, OWN, SchemaLimits

if TYPE_CHECKING:
    # Only for annotations: calling imports this module at run time.
    from headgate.operations.calling import Bound


class Env(Protocol):
    """The operations a composing handler can call; all others appear not to exist.

    ``env.github.list_issues({...})`` is short for ``env.call("github/list_issues", {...})``.
    """

    async def call(
        self, operation_id: str, value: Any = None, *, timeout_seconds: float | None = None
    ) -> Any:
        """Run an operation and return its data, or raise its error."""
        ...

    async def execute(
        self, operation_id: str, value: Any = None, *, timeout_seconds: float | None = None
    ) -> ResponseEnvelope:
        """Run an operation and return its envelope, also for an error result."""
        ...

    def __getattr__(self, namespace: str) -> Any: ...


class _Ids(msgspec.Struct, frozen=True):
    request_id: str
    parent_request_id: str | None = None


class OperationContext(_Ids, frozen=True, kw_only=True):
    """One call, as its handler sees it.

    A struct, because one is made for every call and a struct is cheaper than a dataclass.
    """

    #: The identity that access control checked: the caller, or the authority of the composing operation.
    identity: Identity | None = None
    #: The root caller, for audit only; access control ignores it.
    caller: Identity | None = None
    capabilities: Capabilities = NO_CAPABILITIES
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    #: None for operations that may not compose.
    env: Env | None = None
    #: On the event loop's clock.
    deadline: float | None = None

    @property
    def internal(self) -> bool:
        """Whether another operation calls; true only in contexts that the dispatcher makes."""
        return False

    def remaining_seconds(self) -> float | None:
        """Return the time left: zero after the deadline, None without one."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - asyncio.get_running_loop().time())


#: Takes the input and the context; returns a value or an envelope.
Handler: TypeAlias = Callable[[Any, OperationContext], Awaitable[Any]]
_T = TypeVar("_T")


class Provenance(StrEnum):
    """Where a registration came from; only code of this process composes."""

    LOCAL = "local"
    FROM_MCP = "from_mcp"

    @property
    def is_leaf(self) -> bool:
        """Whether it calls out and never composes."""
        return self is not Provenance.LOCAL


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
    handler: Handler
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
        problem = _problem(self)
        if problem:
            raise RegistrationInvalid(f"{self.spec.id}: {problem}")

    def bind(self, model: type[_T]) -> Bound[_T]:
        """Return a callable that runs this operation and returns a model.

        A caller that holds the registration may run it, even an internal one, without a registry.

        Raises:
            RegistrationInvalid: the operation composes others, so it needs its registry.
        """
        from headgate.operations.calling import Bound  # noqa: PLC0415 - calling runs registrations: it imports this

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


def _problem(registration: HandlerRegistration) -> str | None:
    handler = registration.handler
    # An object with an async generator as its __call__ yields too.
    if inspect.isasyncgenfunction(handler) or inspect.isasyncgenfunction(type(handler).__call__):
        return "a handler returns one result; it is no async generator."
    composes = registration.composition_authority is not None or registration.scoped_env is not None
    if registration.provenance.is_leaf and composes:
        return "an imported operation composes nothing, so it has neither authority nor env."
    return None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A registration with compiled schemas, made once at registration; None stands for an empty schema."""

    registration: HandlerRegistration
    input: CompiledSchema | None
    output: CompiledSchema | None
    errors: Mapping[str, CompiledSchema | None]

    @property
    def spec(self) -> OperationSpec:
        """What the operation is."""
        return self.registration.spec


def prepare(registration: HandlerRegistration) -> Prepared:
    """Compile the schemas of a registration.

    Imported schemas are foreign and pass the strict guard; those of this process only have to be schemas.
    """
    spec = registration.spec
    limits, known = FOREIGN if registration.provenance.is_leaf else OWN, registration.compiled
    errors: Mapping[str, CompiledSchema] = {} if known is None else known.errors
    try:
        return Prepared(
            registration,
            _compile(spec.input_schema, limits, known and known.input),
            _compile(spec.output_schema, limits, known and known.output),
            {
                error.code: _compile(error.schema, limits, errors.get(error.code))
                for error in spec.error_schemas
            },
        )
    except SchemaParse as error:
        raise SchemaParse(f"{spec.id}: {error.message}", details=error.details) from None


def _compile(schema: JsonSchema, limits: SchemaLimits, known: CompiledSchema | None) -> CompiledSchema | None:
    if schema is True or schema == {}:
        return None
    return known if known is not None and known.source == schema else compile_schema(schema, limits)
