"""Call the tools of one server by their names, without a registry.

::

    async with from_mcp("https://example.com/mcp") as example:
        result = await example.call("weather", city="Oslo")
        print(result.data, result.text)

An input that does not fit and a name that is not there are answered with the nearest that would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

from headgate.errors import CallError
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.request_state import WAITING, OnProgress, Waiting
from headgate.mcp.client.upstream import MAX_SECONDS
from headgate.nearest import near_or_all, nearest, quoted
from headgate.operations.dispatch import Dispatcher, Request, deadline_after, new_request_id
from headgate.operations.envelope import ResponseEnvelope
from headgate.operations.registration import HandlerRegistration, Prepared, expose, prepare
from headgate.operations.spec import AccessControl, JsonSchema


class ToolCaller:
    """Calls tools by name; each is prepared when it is first called."""

    def __init__(self, tools: Iterable[HandlerRegistration], limits: Limits) -> None:
        self._tools = {str(tool.meta["mcp"]["tool"]): tool for tool in tools}
        self._seconds = limits.total_seconds
        # So many at a time: calls of one program wait for each other, and are not refused.
        self._turns = asyncio.Semaphore(limits.concurrency)
        self._prepared: dict[str, Prepared] = {}
        self._dispatcher = Dispatcher(self._prepared.get, lambda: 0)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in the order of the server."""
        return tuple(self._tools)

    def bound(self, name: str) -> Callable[..., Awaitable[ResponseEnvelope]]:
        """Return a tool as a function of its arguments.

        Raises:
            AttributeError: there is no such tool.
        """
        if name not in self._tools:
            raise AttributeError(f"There is no tool {quoted(name)}.{near_or_all(name, self.names, 'Tools')}")
        return partial(self.call, name, None)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        /,
        *,
        timeout_seconds: float | None = None,
        on_progress: OnProgress | None = None,
        **named: Any,
    ) -> ResponseEnvelope:
        """Call a tool and return its envelope, unless it failed.

        Raises:
            CallError: there is no such tool, its input does not fit, or it failed.
        """
        tool = self._tools.get(name)
        if tool is None:
            near = near_or_all(name, self.names, "Tools")
            raise CallError("NOT_FOUND", f"There is no tool {quoted(name)}.{near}", details={"tool": name})
        value = {**(arguments or {}), **named}
        if name not in self._prepared:
            self._prepared[name] = prepare(expose(tool, access_control=AccessControl()))
        if timeout_seconds is not None and not 0 < timeout_seconds <= MAX_SECONDS:
            raise CallError("INVALID_INPUT", "timeout_seconds is more than 0 and at most 3600.")
        waiting = Waiting(on_progress, is_patient=timeout_seconds is not None)
        try:
            async with self._turns:
                request = Request(
                    name,
                    value,
                    new_request_id(),
                    deadline=deadline_after(timeout_seconds or self._seconds),
                    metadata={WAITING: waiting},
                )
                envelope = await self._dispatcher.execute(request)
            envelope.unwrap()
        except CallError as error:
            raise _explained(error, name, value, tool.spec.input_schema) from error.__cause__
        return envelope


def _explained(error: CallError, name: str, value: Mapping[str, Any], schema: JsonSchema) -> CallError:
    """Name the tool in an error; of an argument that it does not know, name the nearest that it does."""
    properties: Any = {} if isinstance(schema, bool) else schema.get("properties")
    known = [*cast("Mapping[str, Any]", properties)] if isinstance(properties, Mapping) else []
    unknown = [argument for argument in value if argument not in known]
    message = error.message
    if error.code == "INVALID_INPUT" and unknown:
        near = nearest(unknown[0], known, 1)
        hint = f" Did you mean {quoted(near[0])}?" if near else ""
        message = f"{name} takes no {quoted(unknown[0])}.{hint} It takes: {', '.join(known) or 'nothing'}."
    details: Any = error.details
    named = {"tool": name, **(cast("Mapping[str, Any]", details) if isinstance(details, Mapping) else {})}
    return CallError(error.code, message, details=named, retryable=error.retryable, status=error.status)
