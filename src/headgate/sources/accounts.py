"""Accounts: live sources with the settings that the owner gave once, which are stored with the connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headgate.errors import InvalidRequest
from headgate.model.freshness import Freshness, freshness_in
from headgate.model.ids import connector_key
from headgate.model.record import Connection
from headgate.sources.importing import ImportJob
from headgate.sources.protocol import LiveSource
from headgate.sources.secrets import FORMS, check_reference

if TYPE_CHECKING:
    from headgate.store.engines.store import Store

_OPTIONAL = "(optional)"


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """What an import noted about a connection."""

    #: When the last import ended, as RFC 3339; None if none has.
    finished_at: str | None
    #: Whether an import was interrupted and would go on.
    is_interrupted: bool
    #: The live source and its settings; None if the connection came from files.
    live_source: str | None
    settings: Mapping[str, str]
    #: How often the server fetches it, in seconds; 0: never, None: as often as the server's settings say.
    every_seconds: int | None = None
    #: When it was fetched, and how that went; None if it never was.
    freshness: Freshness | None = None


async def raw_state(store: Store, connection: Connection) -> dict[str, Any]:
    """Read the document that is stored with a connection; empty if it has none, or a collector stored something else."""
    stored = await store.state(connection.id)
    document: Any = None if stored is None else msgspec.json.decode(stored)
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


async def state_of(store: Store, connection: Connection) -> ConnectionState:
    """Read what imports have noted about a connection."""
    state = await raw_state(store, connection)
    imported: dict[str, Any] = state.get("import") or {}
    account: dict[str, Any] = state.get("sync") or {}
    finished = imported.get("finished_at")
    return ConnectionState(
        finished,
        is_interrupted=finished is None and bool(imported.get("resume")),
        live_source=account.get("source"),
        settings=account.get("settings") or {},
        every_seconds=account.get("every_seconds"),
        freshness=freshness_in(state),
    )


def account_job(
    source: LiveSource,
    settings: Mapping[str, str],
    name: str | None = None,
    *,
    every_seconds: int | None = None,
) -> ImportJob:
    """Plan the fetching of what is new in an account."""
    known = source.settings
    for unknown in settings.keys() - known.keys():
        raise InvalidRequest(f"There is no setting '{unknown}'.", hint=f"Settings are {', '.join(known)}.")
    for needed, about in known.items():
        if not about.rstrip(".").endswith(_OPTIONAL) and not settings.get(needed):
            raise InvalidRequest(f"The setting '{needed}' is missing.", hint=f"{needed}: {about}")
        if FORMS in about and settings.get(needed):
            check_reference(settings[needed])
    prepare: Callable[[Mapping[str, str]], Mapping[str, str]] | None = getattr(source, "prepared", None)
    settings = settings if prepare is None else prepare(settings)
    variant: Callable[[Mapping[str, str]], str] | None = getattr(source, "variant", None)
    key = source.name if variant is None else f"{source.name}-{variant(settings)}"
    return ImportJob(
        connector_key(key),
        name or source.label(settings),
        source.declare(settings),
        lambda state, _form: source.sync(settings, state),
        notes={"sync": {"source": source.name, "settings": dict(settings), "every_seconds": every_seconds}},
    )


async def add_account(store: Store, job: ImportJob) -> Connection:
    """Store the settings of an account; nothing is fetched yet. The same name again changes them."""
    await store.declare(job.connector_key, job.document)
    same = (job.connector_key, job.display_name)
    every = await store.connections()
    found = next((one for one in every if (one.connector_key, one.display_name) == same), None)
    connection = found or await store.create_connection(*same)
    state = await raw_state(store, connection)
    await store.put_state(connection.id, msgspec.json.encode({**state, **job.notes}))
    return connection
