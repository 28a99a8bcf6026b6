"""Remote servers: their tools and pins, what changed and waits for a decision, and who may call which operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from headgate.auth.gateway import GatewayCaller
from headgate.console.formatting import day
from headgate.console.pages import CONFIRM, Frame, OwnerRequest, View, page, see_other
from headgate.errors import HeadgateError, InvalidRequest, NotFound
from headgate.mcp.client.from_mcp import ImportedOperations
from headgate.mcp.gateway.hosted import PATH as GATEWAY_PATH, HostedGateway, RemoteServer
from headgate.model.ids import client_id
from headgate.web.replies import HttpReply
from headgate.wiring import Services

_PATH = "/console/servers"
_DESCRIPTION_CHARS = 240
_CHANGES_SHOWN = 20
#: What each grade of a change means to the owner, and how it is coloured.
_GRADES: Mapping[str, tuple[str, str]] = {
    "wording": ("only the wording changed", ""),
    "widened": ("takes or gives more than before", "warn"),
    "narrowed": ("takes or gives less than before", "warn"),
    "breaking": ("no longer works the way you approved", "bad"),
    "renamed": ("has another name", "warn"),
    "new": ("was not there before", "warn"),
    "hidden_characters": ("holds characters that you cannot see", "bad"),
    "look_alike": ("has a name that looks like another", "bad"),
}


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Show every server, what waits, and who may call."""
    notices = {"approved": "Approved. The operation can be called again.", "caller": "Saved."}
    return await _page(console, request, notice=notices.get(request.query.get("done"), ""))


async def list_again(console: Services, request: OwnerRequest) -> HttpReply:
    await request.form()
    try:
        await _gateway(console).list_again(request.places["server"])
    except HeadgateError as error:
        return await _page(console, request, problem=f"{error.message} {error.hint}", status=error.status)
    return see_other(_PATH)


async def approve(console: Services, request: OwnerRequest) -> HttpReply:
    """Accept tools as the page showed them."""
    form = await request.form()
    pairs = dict(zip(form.all("tool"), form.all("digest"), strict=False))
    if not pairs:
        raise InvalidRequest("No tool is named.", hint="Go back and choose one.")
    try:
        await _gateway(console).approve(request.places["server"], pairs)
    except HeadgateError as error:
        return await _page(console, request, problem=f"{error.message} {error.hint}", status=error.status)
    return see_other(f"{_PATH}?done=approved")


async def find_caller(_console: Services, request: OwnerRequest) -> HttpReply:
    """Go to the page of a caller, of one that is not there yet also."""
    return see_other(_caller_path(client_id(request.query.get("name").strip())))


async def show_caller(console: Services, request: OwnerRequest) -> HttpReply:
    """Show what a caller may call."""
    return await _caller_page(console, request)


async def change_caller(console: Services, request: OwnerRequest) -> HttpReply:
    """Save what a caller may call, remove it, or make its token."""
    form = await request.form()
    name, do = client_id(request.places["caller"]), form.get("do")
    if do == "remove":
        await console.gateway_callers.remove(name)
    elif do == "token":
        if not request.session.is_fresh:
            return see_other(f"{CONFIRM}?next={quote(_caller_path(name), safe='')}")
        return await _caller_page(console, request, token=await console.gateway_callers.make_token(name))
    else:
        known = [overview for overview in await console.clients.overview() if overview.client_id == name]
        grants = [overview.issued.grant.id for client in known for overview in client.active]
        await console.gateway_callers.allow(name, form.all("server"), form.all("operation"), grants)
    return see_other(f"{_PATH}?done=caller")


def _gateway(console: Services) -> HostedGateway:
    if console.gateway is None:
        raise NotFound("There is no gateway.", hint="Name servers in the setting gateway_servers.")
    return console.gateway


async def _page(
    console: Services, request: OwnerRequest, *, notice: str = "", problem: str = "", status: int = 200
) -> HttpReply:
    names = await console.clients.names()
    view = View(
        is_on=console.gateway is not None,
        servers=await _cards(console),
        callers=tuple(_caller_line(overview, names) for overview in await console.gateway_callers.all()),
        everything=tuple(
            names.get(setting, setting) for setting in console.gateway_callers.named_in_settings
        ),
        clients=tuple(
            (overview.client_id, overview.name)
            for overview in await console.clients.overview()
            if overview.active
        ),
        url=_url(console),
        problem=problem,
    )
    return page("servers.html", Frame("Remote servers", request, "servers", notice), view, status=status)


async def _caller_page(console: Services, request: OwnerRequest, *, token: str = "") -> HttpReply:
    name = client_id(request.places["caller"])
    caller = next(
        (candidate for candidate in await console.gateway_callers.all() if candidate.name == name), None
    )
    called = (await console.clients.names()).get(name, name)
    view = View(
        name=name,
        called=called,
        path=_caller_path(name),
        caller=caller,
        servers=await _cards(console),
        token=token,
        url=_url(console),
    )
    return page("caller.html", Frame(f"What {called} may call", request, "servers"), view)


def _url(console: Services) -> str:
    return console.mcp_url.removesuffix("/mcp") + GATEWAY_PATH


def _caller_path(name: str) -> str:
    return f"{_PATH}/callers/{quote(name, safe='')}"


def _caller_line(caller: GatewayCaller, names: Mapping[str, str]) -> View:
    return View(
        name=names.get(caller.name, caller.name),
        path=_caller_path(caller.name),
        what=", ".join(caller.described),
        since=day(caller.since),
        has_token=caller.token is not None,
    )


async def _cards(console: Services) -> tuple[View, ...]:
    return (
        () if console.gateway is None else tuple(_card(server) for server in await console.gateway.servers())
    )


def _card(server: RemoteServer) -> View:
    imported = server.imported
    path = f"{_PATH}/{quote(server.name, safe='')}"
    if imported is None:
        return View(
            name=server.name, path=path, url=server.url, is_connected=False, problem=server.problem, product="",
            tools=(), pending=(), vanished=(), skipped=(),
        )  # fmt: skip
    report = imported.report()
    info = cast("Mapping[str, str]", report["serverInfo"] or {})
    return View(
        name=server.name,
        path=path,
        url=server.url,
        is_connected=True,
        problem="",
        product=" ".join(filter(None, (info.get("name"), info.get("version")))),
        tools=_tools(imported, report["tools"]),
        pending=tuple(_pending(row, imported) for row in report["blocked"]),
        vanished=tuple(report["vanished"]),
        skipped=tuple((row["tool"], row["reason"]) for row in report["skipped"]),
    )


def _tools(imported: ImportedOperations, rows: Sequence[Mapping[str, Any]]) -> tuple[View, ...]:
    described = {operation.id: operation.description for operation in imported}
    return tuple(
        View(
            name=row["tool"],
            operation=row["operation"],
            description=_short(described[row["operation"]]),
            pin=_mark(row["digest"]),
            notes=row["notes"],
        )
        for row in rows
        if not row["blocked"]
    )


def _pending(change: Mapping[str, Any], imported: ImportedOperations) -> View:
    meaning, colour = _GRADES.get(change["grade"], ("changed", "warn"))
    if change.get("earlier"):
        meaning = f"was called {change['earlier']}"
    changes: list[Mapping[str, Any]] = list(change.get("changes", ()))
    return View(
        name=change["tool"],
        grade=change["grade"],
        meaning=meaning,
        colour=colour,
        changes=tuple(
            (difference["grade"], difference["pointer"] or "/", difference["message"])
            for difference in changes[:_CHANGES_SHOWN]
        ),
        more_changes=max(len(changes) - _CHANGES_SHOWN, 0),
        digest=imported.listed_digest(change["tool"]) or "",
        description=_short(imported.listed_description(change["tool"])),
    )


def _mark(digest: str) -> str:
    return digest.rpartition(":")[2][:8]


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _DESCRIPTION_CHARS else plain[: _DESCRIPTION_CHARS - 1] + "…"
