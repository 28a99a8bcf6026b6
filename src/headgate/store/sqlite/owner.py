"""What is stored about the owner's sign-in, in the store's file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headgate.model.owner import BrowserKind, BrowserSecret, Passkey, SetupLink, SpentChallenge
from headgate.store.sqlite.database import Database, translate_errors
from headgate.store.sqlite.readonly import NoWriter
from headgate.store.sqlite.writer import Writer

_PUT_LINK = (
    "INSERT INTO owner(id, link, link_ends_at) VALUES(1, ?, ?)"
    " ON CONFLICT(id) DO UPDATE SET link = excluded.link, link_ends_at = excluded.link_ends_at"
)
_SET_HASH = (
    "INSERT INTO owner(id, password) VALUES(1, ?)"
    " ON CONFLICT(id) DO UPDATE SET password = excluded.password, link = NULL, link_ends_at = NULL"
)
_PUT_BROWSER = "INSERT INTO owner_browser(digest, kind, made_at, used_at, proved_at) VALUES(?, ?, ?, ?, ?)"
_PASSKEYS = (
    "SELECT id, party, name, public_key, uses, made_at, used_at FROM owner_passkey ORDER BY made_at, id"
)
_PUT_PASSKEY = (
    "INSERT INTO owner_passkey(id, party, name, public_key, uses, made_at, used_at) VALUES(?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT(id) DO UPDATE SET uses = excluded.uses, used_at = excluded.used_at"
)


class SqliteOwnerStore:
    """Works on the connections of a ledger; implements headgate.store.owner.OwnerStore."""

    __slots__ = ("_reader", "_writer")

    def __init__(self, reader: Database, writer: Callable[[], Writer | NoWriter]) -> None:
        self._reader = reader
        #: Looked up at every write: a ledger may have opened another one.
        self._writer = writer

    def password(self) -> str | None:
        """Return the hash of the owner's password; None while there is none."""
        row = self._one("SELECT password FROM owner")
        return None if row is None else row[0]

    def link(self) -> SetupLink | None:
        """Return the link by which a password may be set."""
        row = self._one("SELECT link, link_ends_at FROM owner WHERE link IS NOT NULL")
        return None if row is None else SetupLink(*row)

    def browser(self, digest: bytes, kind: BrowserKind) -> BrowserSecret | None:
        """Look up what a browser holds, as it is at this moment."""
        row = self._one(
            "SELECT made_at, used_at, proved_at FROM owner_browser WHERE digest=? AND kind=?",
            (digest, kind.value),
        )
        return None if row is None else BrowserSecret(digest, kind, *row)

    async def put_link(self, link: SetupLink) -> None:
        """Store a link in place of the last one."""
        await self._run(lambda database: database.run(_PUT_LINK, (link.digest, link.ends_at)))

    async def set_password(self, password: str, link: SetupLink | None) -> bool:
        """Store the hash of a password; with a link, only if that link is still there, which it then is not."""

        def work(database: Database) -> bool:
            row = database.one("SELECT link FROM owner")
            if link is not None and (row is None or row[0] != link.digest):
                return False
            database.run(_SET_HASH, (password,))
            return True

        return await self._run(work)

    async def put_browser(self, secret: BrowserSecret, *, replaces: bytes | None = None) -> None:
        """Store what a browser holds from now on, and remove what it held before."""
        row = secret.digest, secret.kind.value, secret.made_at, secret.used_at, secret.proved_at

        def work(database: Database) -> None:
            if replaces is not None:
                database.run("DELETE FROM owner_browser WHERE digest=?", (replaces,))
            database.run(_PUT_BROWSER, row)

        await self._run(work)

    async def note_use(self, secret: BrowserSecret) -> None:
        """Store when a secret was last used and last proved; one that is not there stays away."""
        values = secret.used_at, secret.proved_at, secret.digest
        sql = "UPDATE owner_browser SET used_at=?, proved_at=? WHERE digest=?"
        await self._run(lambda database: database.run(sql, values))

    async def remove_browser(self, digest: bytes) -> None:
        """Remove what a browser holds."""
        await self._run(lambda database: database.run("DELETE FROM owner_browser WHERE digest=?", (digest,)))

    async def end_sessions(self, *, but: bytes) -> None:
        """Remove every session except one."""
        sql = "DELETE FROM owner_browser WHERE kind=? AND digest<>?"
        await self._run(lambda database: database.run(sql, (BrowserKind.SESSION.value, but)))

    async def reset(self, link: SetupLink) -> None:
        """Remove the password, the passkeys and everything that browsers hold, and store a link."""

        def work(database: Database) -> None:
            database.run("DELETE FROM owner")
            database.run("DELETE FROM owner_passkey")
            database.run("DELETE FROM owner_browser")
            database.run(_PUT_LINK, (link.digest, link.ends_at))

        await self._run(work)

    def passkeys(self) -> Sequence[Passkey]:
        """Return every passkey, the oldest first."""
        with translate_errors():
            return [Passkey(*row) for row in self._reader.all(_PASSKEYS)]

    async def put_passkey(self, passkey: Passkey, challenge: SpentChallenge) -> bool:
        """Store a passkey, new or after a use, unless the challenge was answered before."""
        one = passkey
        row = one.id, one.party, one.name, one.public_key, one.uses, one.made_at, one.used_at

        def work(database: Database) -> bool:
            database.run(
                "DELETE FROM owner_challenge WHERE ends_at<=?", (passkey.used_at or passkey.made_at,)
            )
            if database.one("SELECT 1 FROM owner_challenge WHERE digest=?", (challenge.digest,)):
                return False
            database.run("INSERT INTO owner_challenge VALUES(?, ?)", (challenge.digest, challenge.ends_at))
            database.run(_PUT_PASSKEY, row)
            return True

        return await self._run(work)

    async def remove_passkey(self, passkey_id: bytes) -> bool:
        """Remove a passkey; returns whether there was one."""

        def work(database: Database) -> bool:
            found = database.one("SELECT 1 FROM owner_passkey WHERE id=?", (passkey_id,))
            database.run("DELETE FROM owner_passkey WHERE id=?", (passkey_id,))
            return found is not None

        return await self._run(work)

    def _one(self, sql: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        with translate_errors():
            return self._reader.one(sql, values)

    async def _run(self, work: Callable[[Database], Any]) -> Any:
        return await self._writer().run(work, is_small=True)
