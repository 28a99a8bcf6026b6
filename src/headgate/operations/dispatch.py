"""Run a call: the checks in order, then the handler in a separate task, then the envelope.

A root request comes from outside, a child request from the env of a composing handler, and only an env makes a request
internal. Access control of a child call uses the authority of the composing operation, and the child runs with the
child's secrets. A declared error code passes with its details; an undeclared one becomes ``INTERNAL``, so that callers
do not depend on it and nothing internal leaks.
"""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import msgspec
from pydantic import BaseModel

from headgate.errors import CallError, UpstreamTimeout
from headgate.operations.envelope import LocalMeta, ResponseEnvelope, places_of
from headgate.operations.registration import HandlerRegistration, OperationContext, OutputPolicy, Prepared
from headgate.operations.running import RunningCall, RunningCalls, off_loop, timed_out
from headgate.operations.spec import Identity, OutputKind, Visibility, parse_operation_id, refusal
from headgate.schema.normalise import fill_defaults, normalise
from headgate.schema.value import Issue, copy_json
from headgate.telemetry import get_logger, logs_calls

#: Codes that an imported operation may raise undeclared; a composing one would pass on those of its children.
_LEAF_CODES = frozenset({"INVALID_INPUT", "INVALID_OUTPUT", "TIMEOUT"})
_FAILED = "The operation failed."


class Request(msgspec.Struct, frozen=True):
    """One call. A struct, because one is made for every call."""

    operation_id: str
    value: Any
    request_id: str
    identity: Identity | None = None
    caller: Identity | None = None
    parent: RunningCall | None = None
    deadline: float | None = None
    metadata: Mapping[str, Any] | None = None


def new_request_id() -> str:
    return str(uuid.uuid4())


class _ComposedContext(OperationContext, frozen=True, kw_only=True):
    """The context of a call that another operation makes."""

    @property
    def internal(self) -> bool:
        return True


class Dispatcher:
    """Runs requests against the operations that a lookup function finds."""

    __slots__ = ("_find", "_now_ms", "running")

    def __init__(self, find: Callable[[str], Prepared | None], now_ms: Callable[[], int]) -> None:
        self._find = find
        self._now_ms = now_ms
        self.running = RunningCalls()

    async def execute(self, request: Request) -> ResponseEnvelope:
        """Run one request to its envelope."""
        try:
            prepared, value = await self._admit(request)
            call = self.running.open(RunningCall(request.request_id, request.parent, request.deadline))
            context = self._context(prepared, request, call)
            result = await self.running.run(call, partial(_serve, prepared, value, context))
            envelope = _wrap(prepared, result, request_id=request.request_id, now_ms=self._now_ms())
        except CallError as error:
            _log_end(request, error.code)
            raise
        _log_end(request, "OK" if envelope.error is None else envelope.error.code)
        return envelope

    async def _admit(self, request: Request) -> tuple[Prepared, Any]:
        """Check visibility, access and input, in this order; return the operation and its checked input."""
        prepared = self._find(request.operation_id)
        is_visible = request.parent is not None or (
            prepared is not None and prepared.spec.visibility is Visibility.EXTERNAL
        )
        if prepared is None or not is_visible:
            raise not_found(request.operation_id)
        _check_access(prepared, request.identity, request.value)
        if prepared.input is None or prepared.input.is_light or not prepared.registration.provenance.is_leaf:
            return prepared, _checked_input(prepared, request.value)
        # A foreign schema may take long to compile and to check.
        deadline = math.inf if request.deadline is None else request.deadline
        try:
            return prepared, await off_loop(deadline, _checked_input, prepared, request.value)
        except UpstreamTimeout:
            raise timed_out() from None

    def _context(self, prepared: Prepared, request: Request, call: RunningCall) -> OperationContext:
        registration = prepared.registration
        env = None
        if not registration.provenance.is_leaf:
            env = ComposingEnv(registration, call, caller=request.caller, dispatch=self.execute)
        kind = OperationContext if request.parent is None else _ComposedContext
        return kind(
            request.request_id,
            request.parent.request_id if request.parent else None,
            identity=request.identity,
            caller=request.caller,
            # Those of the operation that runs, never its parent's.
            capabilities=registration.capabilities,
            metadata=dict(request.metadata) if request.metadata else {},
            env=env,
            deadline=request.deadline,
        )


def not_found(operation_id: str) -> CallError:
    """Build the error for a missing operation and, with the same text, for a hidden one."""
    return CallError("NOT_FOUND", f"There is no operation {operation_id[:200]!a}.")


def _check_access(prepared: Prepared, identity: Identity | None, value: Any) -> None:
    """Check access control; of the input only the resource id is read."""
    access = prepared.spec.access_control
    if access.is_open:
        return
    reason = refusal(access, identity, resource_id=_resource_id(prepared.spec.resource_id_path, value))
    if reason is not None:
        raise CallError("FORBIDDEN", reason, status=401 if identity is None else 403)


def _resource_id(path: str | None, value: Any) -> str | None:
    """Read the resource id from the input; an input without one gives an id that no identity holds."""
    if path is None:
        return None
    for step in path.removeprefix("$").split(".")[1:]:
        value = cast("Mapping[str, Any]", value).get(step) if isinstance(value, Mapping) else None
    return str(value) if isinstance(value, str | int) else ""


def _checked_input(prepared: Prepared, value: Any) -> Any:
    """Check the input; return a copy, with declared defaults unless a remote server applies them."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    plain, problem = copy_json({} if value is None else value)
    issues = (problem,) if problem else prepared.input.issues(plain) if prepared.input else ()
    if issues:
        raise invalid_input("The input does not fit", issues)
    registration = prepared.registration
    if prepared.input is None or registration.provenance.is_leaf or not registration.apply_input_defaults:
        return plain
    return fill_defaults(prepared.input, plain)


def invalid_input(what: str, issues: tuple[Issue, ...]) -> CallError:
    """Build the error of an input with issues."""
    places = ", ".join(f"{issue.path} {issue.message}" for issue in issues[:5])
    return CallError("INVALID_INPUT", f"{what}: {places}.", details=[issue.to_dict() for issue in issues])


async def _serve(prepared: Prepared, value: Any, context: OperationContext) -> Any:
    """Run the handler; what it raises becomes a failure that its caller may see."""
    try:
        return await prepared.registration.handler(value, context)
    except CallError as error:
        failure = _shown_failure(prepared, error)
        if failure is error:
            raise
        raise failure from error
    except Exception as error:
        get_logger().error(
            "operation_failed",
            operation_id=prepared.spec.id,
            request_id=context.request_id,
            reason=type(error).__qualname__,
        )
        raise CallError("INTERNAL", _FAILED) from error


def _shown_failure(prepared: Prepared, error: CallError) -> CallError:
    """Translate a call error that a handler raised."""
    if error.code not in prepared.errors:
        if prepared.registration.provenance.is_leaf and error.code in _LEAF_CODES:
            return error
        return CallError("INTERNAL", _FAILED, details={"code": error.code})
    schema = prepared.errors[error.code]
    if schema is not None:
        details, problem = copy_json(error.details)
        issues = (problem,) if problem else schema.issues(details)
        if issues:
            reported = [issue.to_dict() for issue in issues]
            return CallError("INTERNAL", _FAILED, details={"code": error.code, "issues": reported})
    statuses = {declared.code: declared.http_status for declared in prepared.spec.error_schemas}
    error.status = statuses[error.code] or error.status
    return error


def _wrap(prepared: Prepared, result: Any, *, request_id: str, now_ms: int) -> ResponseEnvelope:
    """Wrap a result in an envelope, normalise it and check it against the declared schema."""
    if isinstance(result, ResponseEnvelope):
        envelope = replace(result, request_id=request_id) if result.request_id != request_id else result
        # An adapter has checked its own result; an error result is left unchanged.
        if not (envelope.is_checked or envelope.is_error):
            kind = envelope.output_kind or prepared.spec.output_kind
            data, issues = _normalised(prepared, envelope.data, kind)
            envelope = replace(envelope, data=data, issues=issues, is_checked=True)
    else:
        plain = result.model_dump(mode="json", by_alias=True) if isinstance(result, BaseModel) else result
        data, issues = _normalised(prepared, plain, prepared.spec.output_kind)
        meta = LocalMeta(prepared.spec.id, now_ms)
        envelope = ResponseEnvelope(data, meta, request_id=request_id, issues=issues, is_checked=True)
    if envelope.issues:
        if prepared.registration.output_policy is OutputPolicy.STRICT and envelope.error is not None:
            raise envelope.error
        get_logger().warning(
            "output_breaks_schema",
            operation_id=prepared.spec.id,
            request_id=request_id,
            reason=places_of(envelope.issues),
        )
    return envelope


def _normalised(prepared: Prepared, data: Any, kind: OutputKind | None) -> tuple[Any, tuple[Issue, ...]]:
    is_off = prepared.registration.output_policy is OutputPolicy.OFF
    if prepared.output is None or kind is not OutputKind.DECLARED or is_off:
        return data, ()
    return normalise(prepared.output, data)


def _log_end(request: Request, code: str) -> None:
    if logs_calls():
        get_logger().debug(
            "call_ended",
            request_id=request.request_id,
            parent_id=request.parent.request_id if request.parent else None,
            operation_id=ascii(request.operation_id)[1:-1],
            code=code,
        )


class ComposingEnv:
    """The env of one running call."""

    __slots__ = ("_caller", "_dispatch", "_parent", "_registration")

    def __init__(
        self,
        registration: HandlerRegistration,
        parent: RunningCall,
        *,
        caller: Identity | None,
        dispatch: Callable[[Request], Awaitable[ResponseEnvelope]],
    ) -> None:
        self._registration = registration
        self._parent = parent
        self._caller = caller
        self._dispatch = dispatch

    async def execute(
        self, operation_id: str, value: Any = None, *, timeout_seconds: float | None = None
    ) -> ResponseEnvelope:
        """Run an operation and return its envelope, also for an error result."""
        scope, authority = self._registration.scoped_env, self._registration.composition_authority
        if scope is None or not scope.allows(parse_operation_id(operation_id)):
            raise not_found(operation_id)
        # A child never gets a later deadline than its parent.
        deadlines = [self._parent.deadline, deadline_after(timeout_seconds)]
        request = Request(
            operation_id,
            value,
            new_request_id(),
            identity=None if authority is None else authority.as_identity(),
            caller=self._caller,
            parent=self._parent,
            deadline=min((deadline for deadline in deadlines if deadline is not None), default=None),
        )
        return await self._dispatch(request)

    async def call(
        self, operation_id: str, value: Any = None, *, timeout_seconds: float | None = None
    ) -> Any:
        """Run an operation and return its data, or raise its error."""
        envelope = await self.execute(operation_id, value, timeout_seconds=timeout_seconds)
        return envelope.unwrap()

    def __getattr__(self, namespace: str) -> Namespace:
        if namespace.startswith("_"):
            raise AttributeError(namespace)
        return Namespace(self, namespace)

    def __repr__(self) -> str:
        return f"<env of {self._registration.spec.id}>"


class Namespace:
    """The operations of one namespace, as attributes: short for ``env.call``."""

    __slots__ = ("_env", "_namespace")

    def __init__(self, env: ComposingEnv, namespace: str) -> None:
        self._env = env
        self._namespace = namespace

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self._env.call, f"{self._namespace}/{name}")


def deadline_after(seconds: float | None) -> float | None:
    """Return the time on the loop's clock after so many seconds."""
    return None if seconds is None else asyncio.get_running_loop().time() + seconds
