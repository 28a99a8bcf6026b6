"""Questions that a server asks while one of its tools runs (elicitation), and the importing program's replies.

The capability is offered only when the program gives a callback. A server may then ask for a few plain values at a
time; the question is bounded and checked before the callback receives it, and so is the reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, cast

from headgate.errors import (
    CallError,
    SchemaParse,
    UpstreamProtocolError,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamUnsupported,
)
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.message import sanitise
from headgate.operations.secrets import Secret
from headgate.schema.check import CompiledSchema, compile_schema
from headgate.schema.normalise import normalise

ELICIT = "elicitation/create"
#: The capability offered to a server: forms of plain values, but no URLs to open.
OFFERED: Mapping[str, Any] = {"elicitation": {"form": {}}}

_MAX_MESSAGE = 2000
_MAX_FIELDS = 64
_PLAIN = frozenset({"string", "number", "integer", "boolean", "array"})
_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 0.05, 0.25


@dataclass(frozen=True, slots=True)
class Question:
    """What a server asks before its tool goes on; all of it is text from an untrusted source."""

    #: The namespace under which the server was imported.
    namespace: str
    #: The tool that asks; None where the protocol does not identify it.
    tool: str | None
    #: Without control characters, and at most 2000 characters long.
    message: str
    #: A JSON Schema of one object with plain values.
    schema: Mapping[str, Any]


def _no_values() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a question; made with ``accept``, ``decline`` or ``cancel``."""

    action: Literal["accept", "decline", "cancel"]
    values: Mapping[str, Any] = field(default_factory=_no_values, repr=False)

    @classmethod
    def accept(cls, values: Mapping[str, Any] | None = None) -> Self:
        """Reply with values; a missing one gets the default its schema declares."""
        return cls("accept", dict(values or {}))

    @classmethod
    def decline(cls) -> Self:
        """Refuse to answer."""
        return cls("decline")

    @classmethod
    def cancel(cls) -> Self:
        """Dismiss the question without a choice."""
        return cls("cancel")


#: The callback of the importing program that answers a server's question.
Answerer = Callable[[Question], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class QuestionHandler:
    """Checks the questions of one server, passes them to the program's callback, and checks its replies."""

    answer: Answerer
    namespace: str
    limits: Limits

    async def reply(
        self, params: Any, *, token: Secret | None, deadline: float, tool: str | None = None
    ) -> dict[str, Any]:
        """Ask the program, and return its reply in the protocol's form."""
        fields = _fields(params, "A question of the server is not an object.")
        if fields.get("mode", "form") != "form":
            raise UpstreamUnsupported("The server asks somebody to visit an address; that was not offered.")
        compiled = _form(fields.get("requestedSchema"))
        message = fields.get("message")
        text = sanitise(message if isinstance(message, str) else "", token, most=_MAX_MESSAGE)
        question = Question(self.namespace, tool, text, compiled.schema)
        try:
            async with asyncio.timeout_at(deadline):
                reply = await self.answer(question)
        except TimeoutError as error:
            raise UpstreamTimeout("No reply to the server's question came in time.") from error
        return _checked(reply, compiled)

    async def next_round(
        self, result: Mapping[str, Any], *, progress: Progress, token: Secret | None, deadline: float
    ) -> dict[str, Any]:
        """Reply to a result that asks for input; return what the repeated call must carry in addition."""
        requests = _fields(result.get("inputRequests") or {}, "What the tool asks for is not an object.")
        state = result.get("requestState")
        self._check_limits(requests, state, progress)
        more: dict[str, Any] = {}
        if requests:
            more["inputResponses"] = {
                key: await self.reply(_elicited(request), token=token, deadline=deadline, tool=progress.tool)
                for key, request in requests.items()
            }
        else:
            await asyncio.sleep(progress.pause())
        # Sent back unchanged: only the server reads it.
        return more if state is None else {**more, "requestState": state}

    def _check_limits(self, requests: Mapping[str, Any], state: Any, progress: Progress) -> None:
        progress.rounds += 1
        progress.questions += len(requests)
        most = self.limits.max_questions
        if progress.rounds > most or progress.questions > most:
            raise UpstreamTooLarge("The tool asks for input more often than allowed.")
        if not isinstance(state, str | None):
            raise UpstreamProtocolError("The state that the tool wants back is not a text.")
        if state is None and not requests:
            raise UpstreamProtocolError("The tool asks for input and does not say for which.")
        if len(state or "") > self.limits.max_state_chars:
            raise UpstreamTooLarge("The state that the tool wants back is larger than allowed.")


@dataclass(slots=True)
class Progress:
    """How many questions one call has led to so far."""

    tool: str
    rounds: int = 0
    questions: int = 0
    _pause_seconds: float = _FIRST_PAUSE_SECONDS

    def pause(self) -> float:
        """Return the seconds to wait when the tool only wants to be called again; they double each time."""
        now, self._pause_seconds = self._pause_seconds, min(self._pause_seconds * 2, _LAST_PAUSE_SECONDS)
        return now


def _elicited(request: Any) -> Any:
    fields = _fields(request, "A question of the tool is not an object.")
    if fields.get("method") != ELICIT:
        raise UpstreamUnsupported("The tool asks for something else than values; that was not offered.")
    return fields.get("params")


def _fields(value: Any, otherwise: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UpstreamProtocolError(otherwise)
    return cast("Mapping[str, Any]", value)


def _form(schema: Any) -> CompiledSchema:
    """Compile a schema of one flat object, the only form that the protocol allows."""
    fields = _fields(schema, "A question of the server has no schema.")
    properties = _fields(fields.get("properties") or {}, "A question of the server has no fields.")
    plain = all(
        isinstance(property_schema, Mapping)
        and cast("Mapping[str, Any]", property_schema).get("type") in _PLAIN
        for property_schema in properties.values()
    )
    if fields.get("type") != "object" or not plain or len(properties) > _MAX_FIELDS:
        raise _rejected("The server asks for more than a few plain values.")
    try:
        return compile_schema(dict(fields))
    except SchemaParse as error:
        raise _rejected(f"The schema of the server's question is refused: {error.message}") from error


def _rejected(message: str) -> UpstreamProtocolError:
    return UpstreamProtocolError(message, details={"reason": "upstream_schema_rejected"})


def _checked(reply: Reply, compiled: CompiledSchema) -> dict[str, Any]:
    if reply.action != "accept":
        return {"action": reply.action}
    values, issues = normalise(compiled, dict(reply.values))
    if issues:
        raise CallError(
            "INVALID_INPUT",
            "The reply does not fit what the server asked for.",
            details=[issue.to_dict() for issue in issues],
        )
    return {"action": "accept", "content": values}
