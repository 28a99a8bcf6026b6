"""Serve a home to one agent on standard input and output.

Until the first message that is more than a greeting nothing is imported that is slow to import: hosts give up a
server that does not answer within a second or two.
"""

from __future__ import annotations

import gc

from headgate.auth.keys import digest_of
from headgate.errors import OwnerCredentialRefused
from headgate.home import open_home
from headgate.mcp.serve.results import ServerIdentity
from headgate.mcp.serve.stdio import StdioSession
from headgate.mcp.serve.tools import WHOLE, Surface
from headgate.model.grant import TokenKind
from headgate.model.query import SearchMode
from headgate.settings import Settings
from headgate.store.quick import has_model, kind_of_token


def run_stdio(settings: Settings, token: str, identity: ServerIdentity) -> None:
    """Serve a home to one agent, under the grants of its token."""
    # What is imported stays; looking for garbage among it takes a third of the time.
    gc.disable()
    # Before the client is answered: an agent never reads with an owner's token.
    if _kind(settings, token) == TokenKind.OWNER.value:
        raise OwnerCredentialRefused
    session = StdioSession(identity, surface_of(settings))
    if not session.begin():
        return
    from headgate import wiring  # noqa: PLC0415 - slow to import

    wiring.serve_session(settings, token, session)


def surface_of(settings: Settings) -> Surface:
    """Return the tools that agents are offered, over HTTP and here alike."""
    return WHOLE.with_modes(tuple(SearchMode)) if has_model(settings.semantic_model) else WHOLE


def _kind(settings: Settings, token: str) -> str | None:
    """Look up the kind of a token, and open the store for it only if nothing quicker can tell."""
    is_plain = not settings.store_url and settings.semantic_model in {"auto", "off"}
    home = open_home(settings.home)
    kind = kind_of_token(home.path, digest_of(token)) if is_plain else None
    if kind is not None:
        return kind
    from headgate import wiring  # noqa: PLC0415 - slow to import

    return wiring.kind_of_token(settings, token)
