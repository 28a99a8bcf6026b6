"""Serve a home to one agent on standard input and output.

Until the first message that is more than a greeting nothing is imported that is slow to import: hosts give up a
server that does not answer within a second or two.
"""
# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import gc
import time
from functools import partial

from headgate.auth.keys import digest_of
from headgate.errors import OwnerCredentialRefused
from headgate.home import open_home
from headgate.mcp.serve.results import ServerIdentity
from headgate.mcp.serve.stdio import StdioSession
from headgate.mcp.serve.tools import surface_of
from headgate.model.grant import TokenKind
from headgate.settings import Settings
from headgate.store.quick import TokenSummary, has_model, summary_of_token


def run_stdio(settings: Settings, token: str, identity: ServerIdentity) -> None:
    """Serve a home to one agent, under the grants of its token."""
    # What is imported stays; looking for garbage among it takes a third of the time.
    gc.disable()
    # Before the client is answered: an agent never reads with an owner's token.
    summary = _summary(settings, token)
    if summary.kind == TokenKind.OWNER.value:
        raise OwnerCredentialRefused
    surface = surface_of(has_meaning=has_model(settings.semantic_model)).naming(summary.source_ids)
    session = StdioSession(identity, surface)
    if session.begin():
        import asyncio

        asyncio.run(_serve(settings, token, session))


def _summary(settings: Settings, token: str) -> TokenSummary:
    """Look up what a token is for, and open the store for it only if nothing quicker can tell."""
    is_plain = not settings.store_url and settings.semantic_model in {"auto", "off"}
    home = open_home(settings.home)
    summary = summary_of_token(home.path, digest_of(token), _now()) if is_plain else None
    if summary is not None:
        return summary
    import asyncio

    return asyncio.run(_stored_summary(settings, token))


def _now() -> int:
    # The clock of `headgate.auth.clock` takes longer to import.
    return time.time_ns() // 1000


async def _stored_summary(settings: Settings, token: str) -> TokenSummary:
    from headgate.auth.admission import READABLE
    from headgate.store.models.choice import chosen_model
    from headgate.wiring import open_stores

    chosen_model(settings.semantic_model, settings.semantic_key_file)
    async with open_stores(settings) as stores:
        holder = await stores.ledger.holder(digest_of(token))
        if holder is None:
            return TokenSummary("")
        readable = (issued.grant for issued in holder.grants if issued.state(_now()) in READABLE)
        return TokenSummary(holder.token.kind.value, tuple(grant.source_id for grant in readable))


async def _serve(settings: Settings, token: str, session: StdioSession) -> None:
    from headgate.mcp.serve.reader import HandleMaker, Reader
    from headgate.reading.home import ReadContext
    from headgate.reading.local import LocalResourceServer, LocalWithoutModel
    from headgate.wiring import build_services, fresh_request_id, prepare, served_address

    services = build_services(settings, prepare(settings), makes_vectors=False)
    handles = HandleMaker(services.reads.sealer)
    address = services.mcp_url.removesuffix("/mcp")
    served = partial(served_address, settings.home)

    async def reader_of(via: str) -> Reader:
        # Admitted at every call, so that a revocation takes effect on the next one.
        access = await services.admission.admit(token)
        if access.is_owner:
            raise OwnerCredentialRefused
        context = ReadContext(access, fresh_request_id(), via)
        if services.reads.rules.has_meaning:
            port = LocalWithoutModel(services.reads, context, token, served)
        else:
            port = LocalResourceServer(services.reads, context)
        return Reader(port, handles, address, context.request_id)

    async with services.running():
        await session.serve(reader_of)
