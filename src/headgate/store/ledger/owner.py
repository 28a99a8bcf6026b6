"""What is stored about the owner's sign-in: the password's hash, the link that sets it, and what browsers hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headgate.model.ledger import BrowserKind, BrowserSecret, Passkey, SetupLink, SpentChallenge
from headgate.store.sql.database import Database

if TYPE_CHECKING:
    from headgate.store.ledger.ledger import LedgerConnections


class OwnerStore:
    """Stores and finds, on the connections of a ledger; who may sign in is decided in `headgate.auth`."""

    __slots__ = ("_connections",)

    def __init__(self, connections: LedgerConnections) -> None:
        self._connections = connections

    async def password(self) -> str | None:
        """Return the hash of the owner's password; None while there is none."""
        row = await self._one("owner_password")
        return None if row is None else row[0]

    async def link(self) -> SetupLink | None:
        """Return the link by which a password may be set."""
        row = await self._one("owner_link")
        return None if row is None else SetupLink(*row)

    async def browser(self, digest: bytes, kind: BrowserKind) -> BrowserSecret | None:
        """Look up what a browser holds, as it is at this moment."""
        row = await self._one("browser", (digest, kind.value))
        return None if row is None else BrowserSecret(digest, kind, *row)

    async def put_link(self, link: SetupLink) -> None:
        """Store a link in place of the last one."""
        await self._run(lambda database: database.run(database.sql["put_link"], (link.digest, link.ends_at)))

    async def set_password(self, password: str, link: SetupLink | None) -> bool:
        """Store the hash of a password; with a link, only if that link is still there, which it then is not."""

        def work(database: Database) -> bool:
            row = database.one(database.sql["owner_link_digest"])
            if link is not None and (row is None or row[0] != link.digest):
                return False
            database.run(database.sql["set_password"], (password,))
            return True

        return await self._run(work)

    async def put_browser(self, secret: BrowserSecret, *, replaces: bytes | None = None) -> None:
        """Store what a browser holds from now on, and remove what it held before."""
        row = secret.digest, secret.kind.value, secret.made_at, secret.used_at, secret.proved_at

        def work(database: Database) -> None:
            if replaces is not None:
                database.run(database.sql["delete_browser"], (replaces,))
            database.run(database.sql["put_browser"], row)

        await self._run(work)

    async def note_use(self, secret: BrowserSecret) -> None:
        """Store when a secret was last used and last proved; does nothing if it was removed meanwhile."""
        values = secret.used_at, secret.proved_at, secret.digest
        await self._run(lambda database: database.run(database.sql["note_browser_use"], values))

    async def remove_browser(self, digest: bytes) -> None:
        """Remove what a browser holds."""
        await self._run(lambda database: database.run(database.sql["delete_browser"], (digest,)))

    async def end_sessions(self, *, but: bytes) -> None:
        """Remove every session except one."""
        values = BrowserKind.SESSION.value, but
        await self._run(lambda database: database.run(database.sql["end_browsers"], values))

    async def reset(self, link: SetupLink) -> None:
        """Remove the password, the passkeys and everything that browsers hold, and store a link."""

        def work(database: Database) -> None:
            database.run(database.sql["delete_owner"])
            database.run(database.sql["delete_passkeys"])
            database.run(database.sql["delete_browsers"])
            database.run(database.sql["put_link"], (link.digest, link.ends_at))

        await self._run(work)

    async def passkeys(self) -> Sequence[Passkey]:
        """Return every passkey, the oldest first."""
        rows = await self._connections.look_up(lambda database: database.all(database.sql["passkeys"]))
        return [Passkey(*row) for row in rows]

    async def put_passkey(self, passkey: Passkey, challenge: SpentChallenge) -> bool:
        """Store a passkey, new or after a use, unless the challenge was answered before."""
        key = passkey
        row = key.id, key.party, key.name, key.public_key, key.uses, key.made_at, key.used_at

        def work(database: Database) -> bool:
            database.run(database.sql["delete_old_challenges"], (passkey.used_at or passkey.made_at,))
            if database.one(database.sql["challenge_exists"], (challenge.digest,)):
                return False
            database.run(database.sql["insert_challenge"], (challenge.digest, challenge.ends_at))
            database.run(database.sql["put_passkey"], row)
            return True

        return await self._run(work)

    async def remove_passkey(self, passkey_id: bytes) -> bool:
        """Remove a passkey; returns whether there was one."""

        def work(database: Database) -> bool:
            row = database.one(database.sql["passkey_exists"], (passkey_id,))
            database.run(database.sql["delete_passkey"], (passkey_id,))
            return row is not None

        return await self._run(work)

    async def _one(self, statement: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        return await self._connections.look_up(lambda database: database.one(database.sql[statement], values))

    async def _run(self, work: Callable[[Database], Any]) -> Any:
        return await self._connections.change(work)
