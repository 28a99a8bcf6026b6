"""Which sources there are: the built-in ones, and those that other packages register by entry point."""

from __future__ import annotations

from importlib.metadata import entry_points

from headgate.errors import InvalidRequest
from headgate.sources.calendar.source import CALENDAR
from headgate.sources.chat.imessage import IMESSAGE
from headgate.sources.chat.meta import INSTAGRAM, MESSENGER
from headgate.sources.chat.signal import SIGNAL
from headgate.sources.chat.slack import SLACK
from headgate.sources.chat.streams import CHANNELS, MEMBERS, MESSAGES
from headgate.sources.chat.telegram import TELEGRAM
from headgate.sources.chat.whatsapp import WHATSAPP
from headgate.sources.contacts import CONTACTS
from headgate.sources.conversations.assistants import CHATGPT, CLAUDE
from headgate.sources.conversations.coding import CLAUDE_CODE, CODEX
from headgate.sources.conversations.streams import CONVERSATION_STREAMS
from headgate.sources.documents.source import DOCUMENTS
from headgate.sources.file_source import FormatsSource
from headgate.sources.git import GIT
from headgate.sources.history.browser import BROWSER
from headgate.sources.history.gpx import GPX
from headgate.sources.history.health import HEALTH
from headgate.sources.history.media import ACTIVITY, SPOTIFY, YOUTUBE
from headgate.sources.history.places import LOCATION
from headgate.sources.mail.source import MAIL
from headgate.sources.money.source import MONEY
from headgate.sources.notes import NOTES
from headgate.sources.protocol import LiveSource, Source
from headgate.sources.tables.source import TABLES

#: The entry point group; each entry names an object of a class that inherits from `Source`.
GROUP = "headgate.sources"
#: The same for `LiveSource`.
LIVE_GROUP = "headgate.live_sources"


_CHATS = (SLACK, TELEGRAM, WHATSAPP, SIGNAL, IMESSAGE, MESSENGER, INSTAGRAM)
CHAT = FormatsSource("chat", "Chat", _CHATS, (CHANNELS, MESSAGES, MEMBERS), plain_form=2)
CONVERSATIONS = FormatsSource(
    "conversations",
    "AI conversations",
    (CHATGPT, CLAUDE, CLAUDE_CODE, CODEX),
    CONVERSATION_STREAMS,
    plain_form=2,
)
HISTORY = FormatsSource("history", "History", (BROWSER, SPOTIFY, YOUTUBE, LOCATION, HEALTH, ACTIVITY, GPX))

BUILT_IN: tuple[Source, ...] = (
    *(CALENDAR, CHAT, CONTACTS, CONVERSATIONS, GIT, HISTORY),
    *(MAIL, DOCUMENTS, MONEY, NOTES, TABLES),
)


def sources() -> dict[str, Source]:
    """Return every source by its name; a built-in one cannot be replaced."""
    others: list[Source] = [entry.load() for entry in entry_points(group=GROUP)]
    return {source.name: source for source in (*others, *BUILT_IN)}


def chosen_sources(name: str | None) -> dict[str, Source]:
    """Return the sources to choose from: all, or the one that was named."""
    known = sources()
    if name is None:
        return known
    if name not in known:
        raise InvalidRequest(
            f"There is no source '{name[:80]}'.",
            hint=f"Sources are {', '.join(sorted(known))}.",
            param="source",
        )
    return {name: known[name]}


def live_sources() -> dict[str, LiveSource]:
    loaded: list[LiveSource] = [entry.load() for entry in entry_points(group=LIVE_GROUP)]
    return {source.name: source for source in loaded}
