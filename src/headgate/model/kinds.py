"""The kinds of records that built-in sources bring, in words of ours: tools name those of a grant.

Hosts that load tools late find them by the words that people use. What a source declares about itself is never
repeated here: another could write anything into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

#: The publisher of the built-in sources, and how the ids of all of them begin.
PUBLISHER = "https://headgate.example/sources"


class RecordKind(NamedTuple):
    """A kind of records: its name in a sentence, and more words by which people look for it."""

    name: str
    hint: str = ""


_MAIL = RecordKind("mail", "email invoices")
_WEB = RecordKind("web history", "browser")
_PLACES = RecordKind("places", "trips")
#: By what follows the publisher in the id of a source; of a name with a hyphen, the part before it counts for all.
_KINDS: Mapping[str, RecordKind] = {
    "mail": _MAIL,
    "imap": _MAIL,
    "calendar": RecordKind("calendar", "events tasks"),
    "chat": RecordKind("chat", "messages"),
    "money": RecordKind("bank", "transactions payments"),
    "notes": RecordKind("notes"),
    "contacts": RecordKind("contacts", "people phone"),
    "documents": RecordKind("documents", "files invoices"),
    "conversations": RecordKind("AI chats"),
    "git": RecordKind("commits", "code"),
    "tables": RecordKind("tables", "spreadsheets"),
    "history-browser": _WEB,
    "history-activity": _WEB,
    "history-spotify": RecordKind("music", "songs"),
    "history-youtube": RecordKind("videos"),
    "history-location": _PLACES,
    "history-gpx": _PLACES,
    "history-health": RecordKind("health", "workouts"),
}
_OTHER = RecordKind("other records")
_ANY = (RecordKind("one person's records", "personal data"),)


def kinds_of(source_ids: Iterable[str]) -> tuple[RecordKind, ...]:
    """Return the kinds of some sources in a fixed order; those that are not built in are one kind at the end."""
    kinds = {_kind(source) for source in source_ids}
    known = tuple(kind for kind in dict.fromkeys(_KINDS.values()) if kind in kinds)
    if not known:
        return _ANY
    return (*known, _OTHER) if None in kinds else known


def _kind(source_id: str) -> RecordKind | None:
    publisher, _, name = source_id.rpartition("/")
    if publisher != PUBLISHER:
        return None
    return _KINDS.get(name) or _KINDS.get(name.partition("-")[0])
