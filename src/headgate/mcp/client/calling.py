"""Call one operation of a server from a thread, for a source that reads records from it.

The session has an event loop of this thread. Pins and the guard on addresses hold as for every import.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from headgate.errors import CallError, NotFound
from headgate.mcp.client.addresses import parse_endpoint
from headgate.mcp.client.from_mcp import ImportedOperations, ImportOptions, from_mcp
from headgate.mcp.client.pins import PinStore
from headgate.operations.access import AccessControl
from headgate.operations.registration import HandlerRegistration, expose
from headgate.operations.registry import Registry
from headgate.sources.remote import OperationAddress, RemoteOperation

_NAMESPACE = "remote"
_CALL_SECONDS = 120.0


class OpenedOperation:
    """One operation on an open session."""

    def __init__(self, runner: asyncio.Runner, registration: HandlerRegistration, server: str) -> None:
        self._runner = runner
        self._registration = expose(registration, access_control=AccessControl())
        self._server = server

    @property
    def is_read_only(self) -> bool:
        """Whether the server claims that it changes nothing."""
        hints: Any = self._registration.meta["mcp"].get("annotations")
        return isinstance(hints, Mapping) and cast("Mapping[str, Any]", hints).get("readOnlyHint") is True

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call it and return its structured result.

        Raises:
            CallError: it failed, or is not what was approved.
        """
        registry = Registry([self._registration])
        call = registry.execute(self._registration.id, dict(arguments), timeout_seconds=_CALL_SECONDS)
        try:
            return self._runner.run(call).unwrap(allow_issues=True)
        except CallError as error:
            if error.code == "tool_definition_changed":
                error.hint = f"See what changed with: headgate ops pins {self._server}"
            raise


@contextmanager
def opened_operation(address: OperationAddress, *, pins: PinStore) -> Generator[RemoteOperation]:
    """Import the server and find the operation."""
    host = parse_endpoint(address.server).host
    options = ImportOptions(
        allowed_hosts=frozenset({host}) if address.allow_private else frozenset(), on_bad_tool="skip"
    )
    with asyncio.Runner() as runner:
        imported = runner.run(from_mcp(address.server, _NAMESPACE, address.token, pins=pins, options=options))
        try:
            yield OpenedOperation(runner, _find(imported, address.tool), address.server)
        finally:
            runner.run(imported.aclose())


def _find(imported: ImportedOperations, name: str) -> HandlerRegistration:
    for tool in imported.tools:
        if tool.meta["mcp"]["tool"] == name:
            return tool
    raise NotFound(f"The server has no tool called {name!a}.", hint="See 'headgate ops list'.")
