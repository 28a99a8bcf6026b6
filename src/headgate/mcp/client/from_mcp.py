"""Import a remote MCP server as typed operations, over streamable HTTP and nothing else.

::

    async with from_mcp("https://example.com/mcp", auth_token=token) as example:
        print((await example.call("weather", city="Oslo")).data)

    imported = await from_mcp("https://example.com/mcp", "example", token)
    registry.register_all(imported)

The import registers nothing itself and reads no environment. Its session lives until the end of the block, or ``aclose()``.
Operations that are registered need a namespace of yours: a server does not name itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import ssl
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self, overload

import httpx2

from headgate.errors import (
    AdapterConfigInvalid,
    AdapterError,
    CallError,
    DiscoveryFailed,
    NameCollision,
    RegistrationInvalid,
    SchemaParse,
    Unauthorized,
    UpstreamAuthFailed,
    UpstreamTimeout,
)
from headgate.mcp.client.forward import Forwarding, Shape, forwarding_handler, reason_details
from headgate.mcp.client.limits import Limits, held
from headgate.mcp.client.mapping import (
    COMPILED_CONTENT,
    COMPILED_ERRORS,
    MappingBounds,
    Naming,
    Skipped,
    Tool,
    map_tools,
)
from headgate.mcp.client.members import Prompts, Resources
from headgate.mcp.client.message import checked_token
from headgate.mcp.client.network import DialOptions, Resolve, UpstreamEndpoint, parse_endpoint, resolve
from headgate.mcp.client.opening import LoopRunner, Opening
from headgate.mcp.client.pins import (
    NEVER_APPROVED,
    JudgedTools,
    Listing,
    MemoryPins,
    Pin,
    PinStore,
    ToolChange,
    judge,
    pins_of,
)
from headgate.mcp.client.questions import Answerer, QuestionHandler
from headgate.mcp.client.report import Refreshed, import_report
from headgate.mcp.client.request_state import OnProgress
from headgate.mcp.client.scan import blocking, scan
from headgate.mcp.client.tools import ToolCaller
from headgate.mcp.client.upstream import ConnectOptions, Upstream, list_tools
from headgate.operations.envelope import ResponseEnvelope
from headgate.operations.registration import CompiledSchemas, HandlerRegistration, Provenance
from headgate.operations.running import let_loop_run, off_loop
from headgate.operations.secrets import NO_CAPABILITIES, Capabilities, Secret
from headgate.operations.spec import check_namespace
from headgate.schema.cast import cast_value
from headgate.schema.guard import PatternBudget
from headgate.schema.normalise import normalise


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The settings of an import that rarely need to be changed."""

    limits: Limits = field(default_factory=Limits)
    #: Whether one unusable tool fails the whole import or is left out.
    on_bad_tool: Literal["fail", "skip"] = "fail"
    undeclared_output: Literal["content_blocks", "unknown"] = "content_blocks"
    #: How a structured result is fitted to its schema: ``typebox`` invents whatever is wrong or missing.
    cast: Literal["normalise", "typebox"] = "normalise"
    version: str = "1.0.0"
    era: Literal["auto", "modern", "legacy"] = "auto"
    #: Plain http to a host that is not this machine.
    allow_insecure: bool = False
    #: Hosts that may have a private address.
    allowed_hosts: frozenset[str] = frozenset()
    resolve: Resolve = resolve
    #: Used instead of the certificates that this machine trusts.
    tls: ssl.SSLContext | None = None
    #: Called when the server announces that its tools changed; the operations stay as they are.
    on_tools_changed: Callable[[], None] | None = None


#: The tools as they are judged, and the operations made of them.
_Offered = tuple[JudgedTools, tuple[HandlerRegistration, ...]]
_SHAPES: Mapping[str, Shape] = {"normalise": normalise, "typebox": cast_value}


class FromMCP:
    """An MCP server to import: its address, the namespace of its operations, its token."""

    def __init__(
        self,
        endpoint: str,
        namespace: str | None = None,
        auth_token: str | Secret | None = None,
        *,
        namespace_prefix: bool = False,
        http: httpx2.AsyncBaseTransport | None = None,
        pins: PinStore | None = None,
        answer: Answerer | None = None,
        options: ImportOptions | None = None,
    ) -> None:
        self.options = options or ImportOptions()
        self._parsed = parse_endpoint(endpoint, allow_insecure=self.options.allow_insecure)
        self.endpoint = endpoint
        #: Whether the operations may be registered: not under the name of a host.
        self.is_named = namespace is not None
        self.namespace = (
            self._parsed.host.replace(".", "-") if namespace is None else _checked_namespace(namespace)
        )
        self.auth_token = None if auth_token is None else checked_token(Secret(auth_token))
        self.namespace_prefix = namespace_prefix
        self.http = http
        self.pins: PinStore = MemoryPins() if pins is None else pins
        #: Answers the server's questions; without it the server may ask none.
        self.answer = answer

    def __repr__(self) -> str:
        return f"FromMCP({self._parsed.public!r}, {self.namespace!r})"

    async def import_operations(self) -> ImportedOperations:
        """Open a session, list the tools, and make an operation of each.

        Raises:
            DiscoveryFailed: the server cannot be reached, or breaks the protocol.
            Unauthorized: the server refused the token.
            SchemaParse: a tool cannot be used.
            NameCollision: two tools have one name.
        """
        imported = ImportedOperations(self, self._parsed)
        try:
            await imported.load()
        except BaseException:
            await imported.aclose()
            raise
        return imported


def from_mcp(
    endpoint: str,
    namespace: str | None = None,
    auth_token: str | Secret | None = None,
    *,
    namespace_prefix: bool = False,
    http: httpx2.AsyncBaseTransport | None = None,
    pins: PinStore | None = None,
    answer: Answerer | None = None,
    options: ImportOptions | None = None,
) -> Opening[ImportedOperations]:
    """Import an MCP server: await the result, or use it with ``async with``; see ``FromMCP``.

    Without a namespace its tools can be called, but not registered.

    Raises:
        AdapterError: it could not be imported.
    """
    # Wrapped under the same name, so that no traceback shows the plain token in a local variable.
    auth_token = None if auth_token is None else Secret(auth_token)
    adapter = FromMCP(
        endpoint,
        namespace,
        auth_token,
        namespace_prefix=namespace_prefix,
        http=http,
        pins=pins,
        answer=answer,
        options=options,
    )
    return Opening(adapter.import_operations)


@contextmanager
def from_mcp_sync(
    endpoint: str, auth_token: str | Secret | None = None, **options: Any
) -> Generator[SyncImport]:
    """Import an MCP server for code without an event loop, for the length of a ``with`` block; see ``from_mcp``.

    Raises:
        AdapterError: it could not be imported.
    """
    auth_token = None if auth_token is None else Secret(auth_token)
    with LoopRunner() as runner:
        imported = runner.run(FromMCP(endpoint, None, auth_token, **options).import_operations())
        try:
            yield SyncImport(runner, imported)
        finally:
            runner.run(imported.aclose())


class SyncImport:
    """The tools of one server, for code without an event loop."""

    def __init__(self, runner: LoopRunner, imported: ImportedOperations) -> None:
        self._runner = runner
        self._imported = imported

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return self._imported.tool_names

    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: Any
    ) -> ResponseEnvelope:
        """Call a tool; see ``ImportedOperations.call``."""
        return self._runner.run(self._imported.call(name, arguments, **named))

    def __getattr__(self, name: str) -> Callable[..., ResponseEnvelope]:
        getattr(self._imported, name)
        return partial(self.call, name, None)


class ImportedOperations(Sequence[HandlerRegistration]):
    """The operations of one server, and the session they use."""

    def __init__(self, adapter: FromMCP, endpoint: UpstreamEndpoint) -> None:
        options, answer = adapter.options, adapter.answer
        self._adapter = adapter
        self._question_handler = (
            None if answer is None else QuestionHandler(answer, adapter.namespace, options.limits)
        )
        self._endpoint = endpoint
        naming = Naming(namespace=adapter.namespace, endpoint=endpoint.public)
        self._judged = JudgedTools(Listing({}, (), naming), {}, (), {})
        self._must_verify = False
        self._verifying = asyncio.Lock()
        self._approving = asyncio.Lock()
        #: Whether the server has announced a change of its tools since they were last listed.
        self.stale = False
        #: The namespace.
        self.name = adapter.namespace
        self._tools: tuple[HandlerRegistration, ...] = ()
        self._caller = ToolCaller((), options.limits)
        self.skipped: tuple[Skipped, ...] = ()
        self.client = Upstream(
            endpoint,
            ConnectOptions(
                limits=options.limits,
                dial=DialOptions(
                    allowed_hosts=options.allowed_hosts,
                    connect_seconds=options.limits.connect_seconds,
                    resolve=options.resolve,
                    tls=options.tls,
                ),
                era=options.era,
                http=adapter.http,
                questions=self._question_handler,
            ),
            on_tools_changed=self._tools_changed,
        )

        self._forwarding = Forwarding(
            self.client, self.name, self._check, questions=self._question_handler, shape=_SHAPES[options.cast]
        )

    @overload
    def __getitem__(self, index: int) -> HandlerRegistration: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[HandlerRegistration, ...]: ...
    def __getitem__(self, index: int | slice) -> HandlerRegistration | tuple[HandlerRegistration, ...]:
        return self.tools[index]

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def tools(self) -> tuple[HandlerRegistration, ...]:
        """The operations, to register them.

        Raises:
            AdapterConfigInvalid: the import has no namespace.
        """
        if not self._adapter.is_named:
            raise AdapterConfigInvalid(
                "Operations are registered under a namespace of yours: from_mcp(url, 'name'). "
                "Without one, call(tool) runs them."
            )
        return self._tools

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools that can be called."""
        return self._caller.names

    @property
    def resources(self) -> Resources:
        """The resources of the server: ``list()`` and ``read(uri)``."""
        return Resources(self.client, self._adapter.auth_token)

    @property
    def prompts(self) -> Prompts:
        """The prompts of the server: ``list()`` and ``get(name, **arguments)``."""
        return Prompts(self.client, self._adapter.auth_token)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        timeout_seconds: float | None = None,
        on_progress: OnProgress | None = None,
        **named: Any,
    ) -> ResponseEnvelope:
        """Call a tool by its name and return its envelope; arguments are named, or a mapping.

        ``on_progress`` gets (progress, total or None, message) while the tool runs. With ``timeout_seconds``, at most
        an hour, the server may be silent for so long; without, the limits of the import hold.

        Raises:
            CallError: there is no such tool, its input does not fit, or it failed.
        """
        return await self._caller.call(
            name, arguments, timeout_seconds=timeout_seconds, on_progress=on_progress, **named
        )

    def __getattr__(self, name: str) -> Callable[..., Awaitable[ResponseEnvelope]]:
        """Return a tool as a function: ``await imported.weather(city="Oslo")``."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self._caller.bound(name)

    def __repr__(self) -> str:
        return f"ImportedOperations({self.name!r}, {len(self)} tools from {self._endpoint.public})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the session; calls of these operations fail afterwards."""
        await self.client.aclose()

    @property
    def blocked(self) -> Mapping[str, ToolChange]:
        """The tools that cannot be called until they are approved, and why."""
        return dict(self._judged.blocked)

    def report(self) -> dict[str, Any]:
        """Report what was imported, from which server, and what waits for approval; JSON without secrets."""
        return import_report(self, self._judged)

    async def refresh(self) -> Refreshed:
        """List the tools again and compare; a changed tool is blocked, and the operations stay as they are.

        Raises:
            AdapterError: the tools could not be listed.
        """
        async with self._verifying:
            self.stale = self._must_verify = False
            await self._list(self.client.deadline())
        return Refreshed.of(self._judged)

    def approve(self, *names: str) -> None:
        """Accept tools as they are now; with no name, all of them, and drop the pins of those that are gone.

        The operations of this import are made anew; register them again to use their new schemas.
        """
        listing = self._judged.listing
        self._write_pins(listing, names)
        self._adopt(*self._judged_again(listing))

    async def approve_off_loop(self, *names: str) -> None:
        """Accept tools as ``approve`` does, beside the event loop."""
        listing = self._judged.listing
        # The pins are read, changed and written: two at once would lose one of the approvals.
        async with self._approving:
            await off_loop(math.inf, self._write_pins, listing, names)
        await self.judge_again()

    def _write_pins(self, listing: Listing, names: Sequence[str]) -> None:
        pins = dict(self._pins() or {})
        chosen = names or tuple(listing.tools)
        missing = [name for name in chosen if name not in listing.tools]
        if missing:
            raise AdapterConfigInvalid(f"The server lists no tool called {missing[0]!a}.")
        if not names:
            pins = {}
        pins.update(pins_of(listing.tools[name] for name in chosen))
        self._adapter.pins.write(self._server, pins)

    def listed_digest(self, tool: str) -> str | None:
        """Return the digest of a tool as the server listed it last."""
        listed = self._seen.get(tool)
        return None if listed is None else listed.digest

    def listed_description(self, tool: str) -> str:
        """Return the description of a tool as the server listed it last, approved or not."""
        listed = self._seen.get(tool)
        return "" if listed is None else listed.spec.description

    async def judge_again(self) -> None:
        """Compare the tools that were listed last with the pins as they are now: another process may have approved."""
        while True:
            listing = self._judged.listing
            judged = await off_loop(math.inf, self._judged_again, listing)
            # Unless they were listed again meanwhile.
            if listing is self._judged.listing:
                self._adopt(*judged)
                return

    # How an import comes about

    @property
    def _server(self) -> str:
        """The key of the server in the pins; a query is hashed, because it may hold a secret."""
        query = self._endpoint.url.query
        return self._endpoint.public + (f"#{hashlib.sha256(query).hexdigest()[:16]}" if query else "")

    @property
    def _seen(self) -> Mapping[str, Tool]:
        return self._judged.listing.tools

    def _pins(self) -> dict[str, Pin] | None:
        return self._adapter.pins.read(self._server)

    async def load(self) -> None:
        """List the tools for the first time.

        Raises:
            AdapterError: they could not be listed, or one of them cannot be used.
        """
        try:
            await self._list(self.client.deadline())
        except UpstreamAuthFailed as error:
            raise Unauthorized(details=reason_details(error)) from error
        except (SchemaParse, NameCollision):
            raise
        except AdapterError as error:
            raise DiscoveryFailed(
                f"{self._endpoint.public} could not be imported: {error.message}",
                details=reason_details(error),
            ) from error

    async def _list(self, deadline: float) -> None:
        """List the tools, and compare them with the approved ones beside the event loop."""
        definitions = await list_tools(self.client, self._adapter.auth_token, deadline)
        # Once the tools are in use, one that became unusable must not fail the others.
        skip_bad = self._adapter.options.on_bad_tool == "skip" or bool(self._tools)
        naming = self._naming()
        bounds = self._bounds(naming, deadline)
        self._adopt(*await off_loop(deadline, self._examine, definitions, naming, bounds, skip_bad=skip_bad))

    def _examine(
        self, definitions: Sequence[Any], naming: Naming, bounds: MappingBounds, *, skip_bad: bool
    ) -> _Offered:
        """Map the tools and judge them by their pins; runs in a thread, and so changes nothing here."""
        tools, skipped = map_tools(definitions, naming, bounds, skip_bad=skip_bad)
        seen = {tool.name: tool for tool in tools}
        findings = scan({name: tool.definition for name, tool in seen.items()})
        pins = self._pins()
        if pins is None:
            pins = pins_of(tool for tool in tools if blocking(findings.get(tool.name, ())) is None)
            self._adapter.pins.write(self._server, pins)
        return self._offered(Listing(seen, tuple(skipped), naming, findings), pins, bounds)

    def _bounds(self, naming: Naming, deadline: float) -> MappingBounds:
        return MappingBounds(
            patterns=PatternBudget(self.client.limits.max_patterns),
            known=self._seen if self._judged.listing.naming == naming else {},
            between_tools=partial(_between_tools, deadline),
        )

    def _adopt(self, judged: JudgedTools, registrations: tuple[HandlerRegistration, ...]) -> None:
        self._judged, self.skipped, self._tools = judged, judged.listing.skipped, registrations
        self._caller = ToolCaller(registrations, self.client.limits)

    def _naming(self) -> Naming:
        adapter, first = self._adapter, self.client.first
        info = None if first is None else first.server_info
        return Naming(
            namespace=adapter.namespace,
            endpoint=self._endpoint.public,
            server_name="" if info is None else info.name,
            has_prefix=adapter.namespace_prefix,
            version=adapter.options.version,
            undeclared_output=adapter.options.undeclared_output,
            has_param_headers=self.client.era.is_modern,
        )

    def _judged_again(self, listing: Listing) -> _Offered:
        return self._offered(listing, self._pins() or {}, self._bounds(listing.naming, math.inf))

    def _offered(self, listing: Listing, pins: Mapping[str, Pin], bounds: MappingBounds) -> _Offered:
        judged = judge(listing, pins, bounds, before=self._judged)
        return judged, tuple(map(self._registration, judged.approved.values()))

    def _registration(self, tool: Tool) -> HandlerRegistration:
        token = self._adapter.auth_token
        return HandlerRegistration(
            tool.spec,
            forwarding_handler(tool, self._forwarding),
            provenance=Provenance.FROM_MCP,
            capabilities=NO_CAPABILITIES
            if token is None
            else Capabilities().with_http_token(self.name, token),
            compiled=CompiledSchemas(
                tool.input, tool.output or COMPILED_CONTENT, {**COMPILED_ERRORS, **tool.errors}
            ),
        )

    # While it is used

    def _tools_changed(self) -> None:
        self.stale = self._must_verify = True
        if self._adapter.options.on_tools_changed is not None:
            self._adapter.options.on_tools_changed()

    async def _check(self, tool: str, deadline: float) -> None:
        """List the tools again before the next call when the server has announced a change, in the call's own time."""
        if self._must_verify:
            async with held(self._verifying, deadline, late="The tools were not listed again in time."):
                if self._must_verify:
                    await self._list(deadline)
                    self._must_verify = False
        change = self._judged.blocked.get(tool)
        if change is not None:
            finding = blocking(self._judged.listing.findings.get(tool, ()))
            is_new = change.grade in NEVER_APPROVED
            why = finding.text if is_new and finding else f"It is not what was approved ({change.grade})."
            raise CallError(
                "tool_definition_changed",
                f"The tool {tool!a} is blocked until it is approved. {why}",
                details=change.to_dict(),
            )


def _between_tools(deadline: float) -> None:
    # The loop's clock; this runs in a thread, where there is no loop.
    if time.monotonic() > deadline:
        raise UpstreamTimeout("The tools could not be read in time.")
    let_loop_run()


def _checked_namespace(namespace: str) -> str:
    try:
        return check_namespace(namespace)
    except RegistrationInvalid as error:
        raise AdapterConfigInvalid(error.message) from error
