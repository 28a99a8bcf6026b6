"""What the five tools answer, without MCP library or HTTP: from a registry, the stored calls and an identity.

An error that a model can correct is a result too. A call is noted before it is sent and its answer is stored before it
is returned, so that neither is lost with the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, cast

import msgspec

from headgate.errors import CallError, HeadgateError
from headgate.mcp.gateway.plans import check_plan, filled, items_of
from headgate.mcp.gateway.reading import read_stored
from headgate.mcp.gateway.results import (
    ANSWER_BYTES,
    ToolResult,
    answer_of,
    failed,
    media_of,
    mirror,
    output_of,
    shown_error,
    structure,
)
from headgate.mcp.gateway.selecting import parse_path, select
from headgate.mcp.gateway.stored import ANSWERED, SENT, StoredCall, StoredCalls
from headgate.mcp.gateway.tools import ARGUMENTS, SEARCH_LIMIT
from headgate.nearest import nearest
from headgate.operations.discovery import description, find_visible, visible_specs
from headgate.operations.dispatch import invalid_input
from headgate.operations.envelope import McpMeta, ResponseEnvelope
from headgate.operations.finding import OperationFinder
from headgate.operations.registry import DEFAULT_TIMEOUT_SECONDS, MAX_ENTRIES, Registry
from headgate.operations.signatures import first_sentence, parameters, signature
from headgate.operations.spec import Identity, OperationSpec, parse_operation_id
from headgate.schema.value import copy_json

_CURSOR_CHARS = 10
_SCHEMA_BYTES = 3_000
_NAME_AN_OPERATION = frozenset({"schema", "call"})


@dataclass(frozen=True, slots=True)
class NotedCall:
    """A call as the log has it: never its values."""

    handle: str
    caller: str | None
    operation: str
    #: SHA-256 of the arguments as JSON.
    digest: str
    #: ``sent``, ``answered``, or the code of the error.
    outcome: str
    size_bytes: int


async def _no_links(_operation: str, _uri: str) -> Sequence[Mapping[str, Any]]:
    raise CallError("NOT_FOUND", "This resource cannot be read here.")


@dataclass(slots=True)
class Gateway:
    """A registry as the five tools offer it."""

    registry: Registry
    calls: StoredCalls = field(default_factory=StoredCalls)
    #: Takes each call twice: before it is sent, and when it has ended.
    note: Callable[[NotedCall], None] = lambda _call: None
    #: Why an operation that is not offered is not; None where the caller may not know.
    why_missing: Callable[[str, Identity | None], str | None] = lambda _operation, _identity: None
    #: Reads a resource that an answer of an operation links to, as content blocks.
    read_link: Callable[[str, str], Awaitable[Sequence[Mapping[str, Any]]]] = _no_links
    finder: OperationFinder = field(default_factory=OperationFinder)

    def visible(self, identity: Identity | None) -> list[OperationSpec]:
        """Return the operations that this caller may call."""
        return list(visible_specs(self.registry, identity))

    def counts(self, identity: Identity | None) -> Counter[str]:
        """Count the operations of each server that this caller may call."""
        return Counter(spec.namespace for spec in self.visible(identity))

    async def answer(
        self, tool: str, arguments: Mapping[str, Any] | None, *, identity: Identity | None
    ) -> ToolResult | None:
        """Run a tool call; None if there is no such tool."""
        run = _RUNNERS.get(tool)
        if run is None:
            return None
        try:
            return await run(self, _checked(tool, arguments), identity)
        except CallError as error:
            return failed(error)

    def find(self, operation: str, identity: Identity | None) -> OperationSpec:
        """Find an operation that this caller may call.

        Raises:
            CallError: there is none; the error names the nearest, and why where the caller may know it.
        """
        try:
            return find_visible(self.registry, identity, operation)
        except CallError as missing:
            why = self.why_missing(operation, identity)
            ids = [spec.id for spec in self.visible(identity)]
            near = nearest("/".join(parse_operation_id(operation)), ids)
            hint = why or (f"Nearest: {', '.join(near)}." if near else "Use search to find one.")
            raise CallError(missing.code, f"{missing.message} {hint}") from None

    async def run(
        self, operation: str, value: Any, identity: Identity | None, timeout_seconds: float
    ) -> tuple[str, StoredCall]:
        """Run an operation; return the handle of its stored answer and the answer, an error too.

        Raises:
            CallError: it is not offered, or the call cannot be noted.
        """
        spec = self.find(operation, identity)
        caller = None if identity is None else identity.id
        handle = await self.calls.begin(caller, spec.id)
        digest = _digest(value)
        try:
            self.note(NotedCall(handle, caller, spec.id, digest, SENT, 0))
        except HeadgateError as error:
            raise CallError(
                "RESOURCE_LIMIT", "The call cannot be noted in the log, so it was not sent."
            ) from error
        call = StoredCall(spec.id, self.calls.clock(), "ABORTED", error=shown_error(_ended_early()))
        try:
            call = await self._executed(spec, value, identity, timeout_seconds)
        finally:
            # A caller that goes away ends the call; what became of it is noted all the same.
            stored = await asyncio.shield(self.calls.end(caller, handle, call))
            # The log has that it was sent, so the answer is not withheld where its end cannot be noted.
            with contextlib.suppress(HeadgateError):
                self.note(NotedCall(handle, caller, spec.id, digest, call.outcome, _size(call)))
        if not stored:
            raise CallError("RESOURCE_LIMIT", "The operation ran; its answer is too long to be stored.")
        return handle, call

    async def _executed(
        self, spec: OperationSpec, value: Any, identity: Identity | None, timeout_seconds: float
    ) -> StoredCall:
        now = self.calls.clock()
        try:
            envelope = await self.registry.execute(
                spec.id, value, identity=identity, timeout_seconds=timeout_seconds
            )
            return _stored(spec, envelope, now)
        except CallError as error:
            more: dict[str, Any] = {}
            if error.code == "INVALID_INPUT":
                more = _how_to_call(spec)
            return StoredCall(spec.id, now, error.code, error={**shown_error(error), **more})


def _ended_early() -> CallError:
    """Build the error of a call whose caller went away before the answer came."""
    return CallError(
        "ABORTED",
        "The call was ended before its answer came: it may have run.",
        details={"maybe_executed": True},
    )


def _stored(spec: OperationSpec, envelope: ResponseEnvelope, now: float) -> StoredCall:
    """Write an envelope as a stored call.

    Raises:
        CallError: the output is no JSON.
    """
    meta = envelope.meta
    content = meta.content if isinstance(meta, McpMeta) else ()
    is_remote = isinstance(meta, McpMeta)
    has_structure = not is_remote or meta.structured_content is not None
    data, problem = copy_json(envelope.data) if has_structure else (None, None)
    if problem is not None:
        raise CallError("INVALID_OUTPUT", f"The output {problem.message}.")
    error = None if envelope.error is None else shown_error(envelope.error)
    outcome = ANSWERED if envelope.error is None else envelope.error.code
    return StoredCall(spec.id, now, outcome, content, data, has_structure, error)


def _how_to_call(spec: OperationSpec) -> dict[str, Any]:
    fits = _size(spec.input_schema) <= _SCHEMA_BYTES
    return {"call": signature(spec), **({"input_schema": spec.to_dict()["input_schema"]} if fits else {})}


def _checked(tool: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    named: dict[str, Any] = dict(arguments or {})
    if tool in _NAME_AN_OPERATION and "name" in named and "operation" not in named:
        # Models that know other gateways say so.
        named["operation"] = named.pop("name")
    copied, problem = copy_json(named)
    issues = (problem,) if problem else ARGUMENTS[tool].issues(copied)
    if issues:
        raise invalid_input("The arguments do not fit", issues)
    return cast("dict[str, Any]", copied)


async def _search(gateway: Gateway, arguments: dict[str, Any], identity: Identity | None) -> ToolResult:
    cursor: str = arguments.get("cursor", "0")
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < _CURSOR_CHARS):
        raise CallError("INVALID_INPUT", "The cursor is not one of this tool.")
    # The descriptions are of other servers and may be long: not on the event loop.
    ranked = await asyncio.to_thread(
        gateway.finder.rank, gateway.visible(identity), arguments.get("query", "")
    )
    start, end = int(cursor), int(cursor) + arguments.get("limit", SEARCH_LIMIT)
    page = ranked[start:end]
    document: dict[str, Any] = {"operations": [_listed(spec) for spec in page], "total": len(ranked)}
    lines = [f"{signature(spec)} — {first_sentence(spec)}" for spec in page]
    if end < len(ranked):
        document["nextCursor"] = str(end)
        lines.append(f"{len(ranked) - end} more: cursor {end}")
    if not ranked:
        lines.append("No operation fits. Try other words, or an empty query for all.")
    return ToolResult(document, [{"type": "text", "text": "\n".join(lines)}])


def _listed(spec: OperationSpec) -> dict[str, Any]:
    return {"id": spec.id, "parameters": parameters(spec), "description": first_sentence(spec)}


async def _schema(gateway: Gateway, arguments: dict[str, Any], identity: Identity | None) -> ToolResult:
    spec = gateway.find(arguments["operation"], identity)
    whole = description(spec)
    left_out = (
        ()
        if arguments.get("outputs")
        else ("output_schema", "error_schemas", "version", "tags", "namespace", "name")
    )
    shown = {name: value for name, value in whole.items() if name not in left_out and value not in ([], None)}
    document = {"operation": shown}
    if _size(document) > ANSWER_BYTES:
        caller = None if identity is None else identity.id
        call = StoredCall(
            f"schema of {spec.id}", gateway.calls.clock(), ANSWERED, structured=shown, has_structure=True
        )
        handle = await gateway.calls.begin(caller, call.operation)
        await gateway.calls.end(caller, handle, call)
        return structure({"operation": output_of(call, handle, ANSWER_BYTES)})
    return structure(document)


async def _call(gateway: Gateway, arguments: dict[str, Any], identity: Identity | None) -> ToolResult:
    handle, call = await gateway.run(
        arguments["operation"], arguments.get("input"), identity, DEFAULT_TIMEOUT_SECONDS
    )
    return await asyncio.to_thread(_shown, call, handle)


def _shown(call: StoredCall, handle: str) -> ToolResult:
    if call.error is None:
        return answer_of(call, handle)
    # The tool ran, and what it returned is not what it declares: it can be read all the same.
    more = {"answer": handle} if call.content or call.has_structure else {}
    result = ToolResult({"error": {**call.error, **more}}, (), is_error=True)
    shown = answer_of(call, handle)
    has_own_words = bool(call.content) and call.outcome not in {"INVALID_OUTPUT", "MCP_OUTPUT_MISSING"}
    assert result.structured is not None
    return ToolResult(
        result.structured, shown.content if has_own_words else mirror(result.structured), is_error=True
    )


async def _batch(gateway: Gateway, arguments: dict[str, Any], identity: Identity | None) -> ToolResult:
    calls = arguments["calls"]
    check_plan(calls)
    deadline = asyncio.get_running_loop().time() + DEFAULT_TIMEOUT_SECONDS
    plan = _BatchRun(gateway, identity, deadline, ANSWER_BYTES // max(1, 2 * len(calls)))
    results = [await plan.step(call) for call in calls]
    structured = {"results": results}
    return ToolResult(structured, [*mirror(structured), *plan.media])


@dataclass(slots=True)
class _BatchRun:
    """The run of one batch."""

    gateway: Gateway
    identity: Identity | None
    deadline: float
    bytes_each: int
    #: The whole answer of each step that has run, or its error.
    answers: list[Any] = field(default_factory=list[Any])
    media: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    runs: int = 0

    async def step(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Run one step; return its result."""
        try:
            if "for_each" not in call:
                answer, result = await self._once(call, None, self.bytes_each)
            else:
                answer, result = await self._for_each(call)
        except CallError as error:
            answer, result = error, {"isError": True, "error": shown_error(error)}
        self.answers.append(answer)
        return result

    async def _for_each(self, call: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        items = items_of(call, self.answers)
        pairs = [await self._each(call, item, self.bytes_each // max(1, len(items))) for item in items]
        return [answer for answer, _ in pairs if not isinstance(answer, CallError)], {
            "isError": any(result["isError"] for _, result in pairs),
            "results": [result for _, result in pairs],
        }

    async def _each(self, call: Mapping[str, Any], item: Any, most: int) -> tuple[Any, dict[str, Any]]:
        try:
            return await self._once(call, item, most)
        except CallError as error:
            return error, {"isError": True, "error": shown_error(error)}

    async def _once(self, call: Mapping[str, Any], item: Any, most: int) -> tuple[Any, dict[str, Any]]:
        if self.runs == MAX_ENTRIES:
            raise CallError(
                "RESOURCE_LIMIT", f"A batch runs at most {MAX_ENTRIES} calls; this one was not run."
            )
        self.runs += 1
        left = self.deadline - asyncio.get_running_loop().time()
        value = filled(call.get("input"), self.answers, item)
        handle, done = await self.gateway.run(call["operation"], value, self.identity, max(0.0, left))
        if done.error is not None:
            code, message = str(done.error["code"]), str(done.error["message"])
            return CallError(code, message), {"isError": True, "error": done.error}
        self.media.extend(media_of(done))
        output = output_of(done, handle, 1 << 62)
        if "select" in call:
            selection = select(output, parse_path(call["select"]))
            output = list(selection.values) if selection.is_many else selection.values[0]
        chosen = StoredCall(done.operation, done.at, ANSWERED, structured=output, has_structure=True)
        return output, {"isError": False, "output": output_of(chosen, handle, max(most, 400))}


async def _read(gateway: Gateway, arguments: dict[str, Any], identity: Identity | None) -> ToolResult:
    caller = None if identity is None else identity.id
    return await read_stored(gateway.calls, caller, arguments, _shown, gateway.read_link)


def _digest(value: Any) -> str:
    plain, problem = copy_json(value)
    return sha256(msgspec.json.encode(None if problem else plain, order="sorted")).hexdigest()


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))


_RUNNERS: Mapping[str, Callable[[Gateway, dict[str, Any], Identity | None], Awaitable[ToolResult]]] = {
    "search": _search,
    "schema": _schema,
    "call": _call,
    "batch": _batch,
    "read": _read,
}
