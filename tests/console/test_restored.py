"""A home that is restored from a backup accepts nothing that may have been ended after the backup was made."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headgate.auth.gateway import GatewayCallers
from headgate.auth.sessions import BrowserCookies
from headgate.home import home_in, open_home
from headgate.model.ledger import Passkey, SpentChallenge
from headgate.model.maintenance import Copied, EndedCredentials
from headgate.store.engines import commands
from tests import postgres
from tests.console.browsers import Browser, signed_in
from tests.in_process import NOW, LocalProgram, local_program, settings_for
from tests.policy.worlds import grant, stream_grant

pytestmark = pytest.mark.anyio
ENGINES = ["sqlite", *(["postgres"] if postgres.programs() else [])]


def _flags(engine: str, place: Path) -> dict[str, Any]:
    if engine == "sqlite":
        return {}
    return {"store_url": postgres.database_url(), "store_home": str(place)}


def _home(engine: str, place: Path) -> Any:
    settings = settings_for(place, **_flags(engine, place))
    return home_in(open_home(settings.home), settings.store_url, settings.store_home)


def _callers(program: LocalProgram) -> GatewayCallers:
    return GatewayCallers(program.services.oauth_store, (), program.clock)


async def _with_credentials(program: LocalProgram) -> tuple[str, Browser, str, str]:
    """Give a grant's token, a browser with a session, a token of a gateway caller, and an owner token."""
    browser = await signed_in(program)
    await _callers(program).allow("script", ["city"], [])
    caller = await _callers(program).make_token("script")
    await program.services.sessions.make_link()
    passkey = Passkey(b"id", "localhost", "Phone", b"key", 0, NOW, None)
    assert await program.services.ledger.owner.put_passkey(passkey, SpentChallenge(b"challenge", NOW + 1))
    return await program.grant(grant(stream_grant("messages", "id"))), browser, caller, program.owner


def quiet(_done: int, _total: int) -> None:
    """Show no progress."""


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
async def test_a_restore_ends_every_credential_unless_the_owner_keeps_them(
    tmp_path: Path, engine: str, *, is_kept: bool
):
    first, second = tmp_path / "first", tmp_path / "second"
    async with local_program(first, **_flags(engine, first)) as program:
        client, browser, caller, owner = await _with_credentials(program)
    end_at = None if is_kept else NOW

    def back_up_and_restore() -> Copied:
        commands.commands_of(_home(engine, first)).back_up(tmp_path / "copy", quiet)
        return commands.commands_of(_home(engine, second)).restore(tmp_path / "copy", quiet, end_at=end_at)

    copied = await asyncio.to_thread(back_up_and_restore)
    async with local_program(second, **_flags(engine, second)) as restored:
        assert (await restored.get("/v1/streams", client)).status == (200 if is_kept else 403)
        assert (await restored.get("/v1/streams", owner)).status == (200 if is_kept else 401)
        sessions = restored.services.sessions
        found = [
            await sessions.session(BrowserCookies(session=secret)) for secret in browser.cookies.values()
        ]
        assert any(found) is is_kept
        owner_store = restored.services.ledger.owner
        assert (await owner_store.password() is not None) is is_kept
        assert (await owner_store.link() is not None) is is_kept
        assert bool(await owner_store.passkeys()) is is_kept
        assert (await _callers(restored).holder(caller) is not None) is is_kept
        assert bool(await _callers(restored).all()) is is_kept
    # A row for password and link, a passkey, a session and the mark of its browser.
    ended = EndedCredentials(grants=1, owner_tokens=1, sign_ins=4, gateway_callers=1)
    assert copied.ended == (EndedCredentials() if is_kept else ended)
