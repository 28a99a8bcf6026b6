"""Import several servers at once, from the ``mcpServers`` block that MCP hosts already use.

Only http entries are read. Tokens are references, not text: ``file:PATH`` or ``keyring:SERVICE/USER``, also in braces.
A server that cannot be imported does not affect the others.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit

import msgspec

from headgate.errors import AdapterConfigInvalid, CallError, HeadgateError, NotFound, OperationError
from headgate.mcp.client.from_mcp import FromMCP, ImportedOperations, ImportOptions
from headgate.mcp.client.network import parse_endpoint
from headgate.mcp.client.opening import LoopRunner, Opening
from headgate.mcp.client.pins import PinStore
from headgate.mcp.client.questions import Answerer
from headgate.nearest import near_or_all, quoted
from headgate.operations.registration import HandlerRegistration, expose
from headgate.operations.registry import Registry
from headgate.operations.secrets import Secret
from headgate.operations.spec import AccessControl
from headgate.sources.remote import OperationAddress, RemoteOperation
from headgate.sources.secrets import Secrets

_HTTP_TYPES = {None, "http", "streamable-http", "streamable_http", "streamableHttp"}
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)
#: Braces around a reference are how other programs write it.
_REFERENCE = re.compile(r"(?P<brace>\$\{)?(?P<place>(?:file|keyring):[^{}]+)(?(brace)\})")
_NO_STDIO = (
    "it starts a program (stdio), and Headgate starts none: a configuration file must not be able to run code. "
    "Run a bridge that serves it over http, and give its url here."
)


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server of the block: its name, its URL and the reference to its token."""

    name: str
    url: str
    #: ``file:...`` or ``keyring:...``, or None when the server wants no token.
    token_reference: str | None = None

    @property
    def public_url(self) -> str:
        """The address without user, password and query, which may be secrets."""
        address = urlsplit(self.url)
        return f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"


def read_servers(document: Any) -> tuple[list[ServerEntry], dict[str, OperationError]]:
    """Parse the block; return the usable entries, and an error for each of the others.

    Raises:
        AdapterConfigInvalid: there is no block.
    """
    block = cast("Mapping[str, Any]", document).get("mcpServers") if isinstance(document, Mapping) else None
    if not isinstance(block, Mapping):
        raise AdapterConfigInvalid("There is no 'mcpServers' object.")
    entries: list[ServerEntry] = []
    problems: dict[str, OperationError] = {}
    for name, fields in cast("Mapping[str, Any]", block).items():
        try:
            entries.append(_entry(name, fields))
        except OperationError as error:
            problems[name] = error
    return entries, problems


def _entry(name: str, fields: Any) -> ServerEntry:
    if not isinstance(fields, Mapping):
        raise AdapterConfigInvalid(f"The server '{name}' is not an object.")
    entry = cast("Mapping[str, Any]", fields)
    if "command" in entry or entry.get("type") == "stdio":
        raise AdapterConfigInvalid(f"The server '{name}' is refused: {_NO_STDIO}")
    if entry.get("type") not in _HTTP_TYPES:
        raise AdapterConfigInvalid(f"The server '{name}' is of type {entry['type']!a}; only http is read.")
    url = entry.get("url")
    if not isinstance(url, str):
        raise AdapterConfigInvalid(f"The server '{name}' has no url.")
    return ServerEntry(name, url, _token_reference(name, entry.get("headers")))


def _token_reference(name: str, headers: Any) -> str | None:
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", headers) if isinstance(headers, Mapping) else {}
    reference: str | None = None
    for header, value in fields.items():
        match = _BEARER.fullmatch(value) if isinstance(value, str) else None
        if header.lower() != "authorization" or match is None:
            raise AdapterConfigInvalid(
                f"The server '{name}' sets the header {header!a}; only 'Authorization: Bearer ...' is sent."
            )
        reference = match.group(1)
    if reference is None:
        return None
    named = _REFERENCE.fullmatch(reference)
    if named is None:
        raise AdapterConfigInvalid(
            f"The server '{name}' writes its token, or takes it from the environment; "
            "name it as file:PATH or keyring:SERVICE/USER."
        )
    return named["place"]


class ImportedServers:
    """The servers that could be imported, and why the others could not."""

    def __init__(
        self, servers: Mapping[str, ImportedOperations], problems: Mapping[str, HeadgateError]
    ) -> None:
        self.servers = dict(servers)
        self.problems = dict(problems)

    def __getitem__(self, name: str) -> ImportedOperations:
        """Return a server by its name.

        Raises:
            HeadgateError: it could not be imported, or there is none of this name.
        """
        if name in self.problems:
            raise self.problems[name]
        if name not in self.servers:
            near = near_or_all(name, list(self.servers), "Servers")
            raise NotFound(f"There is no server {quoted(name)}.{near}")
        return self.servers[name]

    def __iter__(self) -> Iterator[HandlerRegistration]:
        return (registration for imported in self.servers.values() for registration in imported)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End every session."""
        await asyncio.gather(*(imported.aclose() for imported in self.servers.values()))


def from_servers(
    servers: str | Path | Mapping[str, Any],
    *,
    required: bool = False,
    secrets: Secrets | None = None,
    pins: PinStore | None = None,
    answer: Answerer | None = None,
    options: ImportOptions | None = None,
) -> Opening[ImportedServers]:
    """Import every http server of an ``mcpServers`` file or document; the name of each is its namespace.

    Await the result, or use it with ``async with``. A server that cannot be imported does not affect the others.

    Raises:
        OperationError: there is no block; or, when all are required, the first problem there is.
    """
    entries, problems = read_servers(servers if isinstance(servers, Mapping) else _document(Path(servers)))
    adapter = partial(FromMCP, pins=pins, answer=answer, options=options)
    return Opening(partial(_imported, entries, problems, secrets or Secrets(), adapter, required=required))


def _document(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise AdapterConfigInvalid(f"{path} cannot be read: {error.strerror}.") from None
    except msgspec.DecodeError as error:
        raise AdapterConfigInvalid(f"{path} is not JSON: {error}.") from None


async def _imported(
    entries: Sequence[ServerEntry],
    problems: Mapping[str, OperationError],
    secrets: Secrets,
    adapter: Callable[[str, str, Secret | None], FromMCP],
    *,
    required: bool,
) -> ImportedServers:
    outcomes = await asyncio.gather(
        *(import_entry(entry, secrets, adapter) for entry in entries), return_exceptions=True
    )
    servers: dict[str, ImportedOperations] = {}
    failures: dict[str, HeadgateError] = dict(problems)
    stray: BaseException | None = None
    for entry, outcome in zip(entries, outcomes, strict=True):
        if isinstance(outcome, ImportedOperations):
            servers[entry.name] = outcome
        elif isinstance(outcome, HeadgateError):
            failures[entry.name] = outcome
        else:
            stray = outcome
    imported = ImportedServers(servers, failures)
    if stray is not None or (required and failures):
        await imported.aclose()
        raise stray or next(iter(failures.values()))
    return imported


async def import_entry(
    entry: ServerEntry, secrets: Secrets, adapter: Callable[[str, str, Secret | None], FromMCP]
) -> ImportedOperations:
    """Import one server of the block, with the token it refers to."""
    token = None if entry.token_reference is None else secrets.find(entry.token_reference)
    return await adapter(entry.url, entry.name, token).import_operations()


_NAMESPACE = "remote"
_CALL_SECONDS = 120.0


class OpenedOperation:
    """One operation on an open session."""

    def __init__(self, runner: LoopRunner, registration: HandlerRegistration, server: str) -> None:
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
    with LoopRunner() as runner:
        adapter = FromMCP(address.server, _NAMESPACE, address.token, pins=pins, options=options)
        imported = runner.run(adapter.import_operations())
        try:
            yield OpenedOperation(runner, _find(imported, address.tool), address.server)
        finally:
            runner.run(imported.aclose())


def _find(imported: ImportedOperations, name: str) -> HandlerRegistration:
    for tool in imported.tools:
        if tool.meta["mcp"]["tool"] == name:
            return tool
    raise NotFound(f"The server has no tool called {name!a}.", hint="See 'headgate ops list'.")
