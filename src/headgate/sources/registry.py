"""Which sources there are: the built-in ones, and those that other packages register by entry point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import entry_points

from headgate.sources.calendar.source import CALENDAR
from headgate.sources.chat.source import CHAT
from headgate.sources.contacts.source import CONTACTS
from headgate.sources.conversations.source import CONVERSATIONS
from headgate.sources.documents.source import DOCUMENTS
from headgate.sources.git.source import GIT
from headgate.sources.history.source import HISTORY
from headgate.sources.inputs.tree import InputTree
from headgate.sources.mail.source import MAIL
from headgate.sources.money.source import MONEY
from headgate.sources.notes.source import NOTES
from headgate.sources.protocol import LiveSource, Recognised, Source
from headgate.sources.tables.source import TABLES

#: The entry point group; each entry names an object with the members of `Source`.
GROUP = "headgate.sources"
#: The same for objects with the members of `LiveSource`.
LIVE_GROUP = "headgate.live_sources"


_BUILT_IN: tuple[Source, ...] = (
    CALENDAR,
    CHAT,
    CONTACTS,
    CONVERSATIONS,
    GIT,
    HISTORY,
    MAIL,
    DOCUMENTS,
    MONEY,
    NOTES,
    TABLES,
)


def sources() -> dict[str, Source]:
    """Return every source by its name; a built-in one cannot be replaced."""
    others: list[Source] = [entry.load() for entry in entry_points(group=GROUP)]
    return {source.name: source for source in (*others, *_BUILT_IN)}


def live_sources() -> dict[str, LiveSource]:
    """Return the live sources of other packages by their names."""
    found: list[LiveSource] = [entry.load() for entry in entry_points(group=LIVE_GROUP)]
    return {source.name: source for source in found}


def detect(tree: InputTree, among: Sequence[Source]) -> tuple[Recognised, ...]:
    """Decide which source reads which file: the surest one, and of equally sure ones the first.

    A file is read once. Several sources may take parts of one tree, such as an archive of many services.
    """
    every = [found for source in among for found in source.detect(tree)]
    taken: set[str] = set()
    chosen: list[Recognised] = []
    for found in sorted(every, key=lambda found: -found.certainty):
        left = [file for file in found.files if file.name not in taken]
        if left:
            taken |= {file.name for file in left}
            chosen.append(replace(found, files=left))
    return tuple(chosen)
