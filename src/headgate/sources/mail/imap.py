"""Mail of an IMAP account: read without changing it, and from then on only what is new.

Folders are opened with EXAMINE and messages fetched with BODY.PEEK, so nothing is marked as read. A folder's mark is
the last UID that was stored, which holds as long as the server gives the folder the same UIDVALIDITY, and its number
of changes (RFC 7162), by which messages are found whose flags changed.
"""

from __future__ import annotations

import imaplib
import ssl
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from headgate.errors import ConfigInvalid, UpstreamAuthFailed, UpstreamProtocolError, UpstreamUnreachable
from headgate.sources.accounts import Connections, cut_at_deadline
from headgate.sources.mail.imap_clients import (
    BoundedImap,
    BoundedImapTls,
    FetchedMessage,
    ImapFolder,
    fetched,
    listed_folders,
    quoted,
)
from headgate.sources.mail.mbox import MAX_MESSAGE_BYTES
from headgate.sources.mail.source import MAIL_STREAMS
from headgate.sources.parser_requests import ReadFetched
from headgate.sources.parsers import AccountParser
from headgate.sources.parts import ImportPart
from headgate.sources.protocol import Covered, Item, LiveSource, Mark, Reject
from headgate.sources.secrets import FORMS, Secrets

_SECONDS = 60.0
_PORTS = {"tls": 993, "starttls": 143, "none": 143}
_LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})
#: UIDs of one search: the answer is one line, and the library refuses lines of a megabyte.
_SEARCHED_UIDS = 80_000
#: The protocol has 32 bits for them; a server that names a higher one would be searched for ever.
_LAST_UID = 2**32
_LISTED_MESSAGES = 200
_FETCHED_BYTES = 8 * 1024 * 1024
_LEFT_OUT = frozenset({"\\noselect", "\\nonexistent"})
#: What an owner has thrown away; read only if a setting names the folder.
_THROWN_AWAY = frozenset({"\\junk", "\\trash"})
_GMAIL = "X-GM-EXT-1"
#: What the library raises, besides its own error, where an answer is not of the protocol.
_UNREADABLE = (ValueError, IndexError, KeyError, TypeError, AttributeError)


class ImapSource(LiveSource):
    name = "imap"
    title = "Mail account"
    streams = MAIL_STREAMS
    plain_form = 2
    settings: Mapping[str, str] = {
        "host": "The name of the IMAP server.",
        "user": "The name to sign in with, often the mail address.",
        "secret": f"Where the app password or token is: {FORMS}.",
        "sign_in": "How to sign in: password, the default, or oauth for an access token (optional)",
        "folders": "Folders to read, separated by commas; all but spam and trash by default (optional)",
        "security": "tls, the default; starttls; or none, for a server on this machine (optional)",
        "port": "The port, if it is not the usual one (optional)",
    }

    def __init__(self, notes: Path | None = None, secrets: Secrets | None = None) -> None:
        self._notes = notes
        self._secrets = secrets or Secrets()

    def label(self, settings: Mapping[str, str]) -> str:
        """Name the connection after the account."""
        return f"Mail of {settings['user']}"

    def sync(self, settings: Mapping[str, str], state: Mapping[str, Any]) -> Iterator[Item | ImportPart]:
        """Fetch new messages, folder by folder; they are read in another process."""
        try:
            with (
                AccountParser(self._notes, settings) as parser,
                _signed_in(settings, self._secrets) as client,
            ):
                for folder in _folders(client, settings):
                    yield from _Folder(client, folder, state.get(folder.name), parser).items()
            if not settings.get("folders"):
                yield from (Covered(stream) for stream in ("messages", "attachments"))
        except OSError as error:
            raise UpstreamUnreachable(f"{settings['host']}: {error}") from None
        except (imaplib.IMAP4.error, *_UNREADABLE) as error:
            raise UpstreamProtocolError(f"{settings['host']} answered: {error}") from None


@contextmanager
def _signed_in(settings: Mapping[str, str], secrets: Secrets) -> Generator[imaplib.IMAP4]:
    secret = secrets.find(settings["secret"])
    with cut_at_deadline() as connections:
        try:
            client = _connected(settings, connections)
        except (OSError, imaplib.IMAP4.error) as error:
            raise UpstreamUnreachable(f"{settings['host']}: {error}") from None
        try:
            _sign_in(client, settings, secret.expose())
            # Servers offer more once somebody is signed in, and the library asks only before.
            (line, *_) = _answers(client.capability())
            client.capabilities = tuple((line or b"").decode("ascii", "replace").upper().split())
            with suppress(imaplib.IMAP4.error):
                # Where it is not offered, changes of flags are not seen.
                client.enable("CONDSTORE")
            yield client
        finally:
            with suppress(OSError, ValueError, imaplib.IMAP4.error):
                client.logout()
            # A server that answers wrongly to the end of a session leaves the library's connection open.
            with suppress(OSError):
                client.shutdown()


def _connected(settings: Mapping[str, str], connections: Connections) -> imaplib.IMAP4:
    host, security = settings["host"], settings.get("security") or "tls"
    if security not in _PORTS:
        raise ConfigInvalid("'security' is tls, starttls or none.", hint="Leave it out for tls.")
    if security == "none" and host not in _LOCAL:
        raise ConfigInvalid("A password is sent in the clear to this machine only.", hint="Use tls.")
    port = int(settings.get("port") or _PORTS[security])
    if security == "tls":
        tls = ssl.create_default_context()
        return BoundedImapTls(host, port, connections=connections, ssl_context=tls, timeout=_SECONDS)
    client = BoundedImap(host, port, connections=connections, timeout=_SECONDS)
    if security == "starttls":
        client.starttls(ssl.create_default_context())
    return client


def _sign_in(client: imaplib.IMAP4, settings: Mapping[str, str], secret: str) -> None:
    user = settings["user"]
    try:
        if settings.get("sign_in") == "oauth":
            token = f"user={user}\x01auth=Bearer {secret}\x01\x01"
            client.authenticate("XOAUTH2", lambda challenge: b"" if challenge else token.encode())
        elif "AUTH=PLAIN" in client.capabilities:
            client.authenticate("PLAIN", lambda _: f"\0{user}\0{secret}".encode())
        else:
            client.login(user, secret)
    except imaplib.IMAP4.error as error:
        raise UpstreamAuthFailed(
            f"{settings['host']} refused to sign in {user}: {error}",
            hint="Check the user; many providers want an app password in place of the usual one.",
        ) from None


def _folders(client: imaplib.IMAP4, settings: Mapping[str, str]) -> list[ImapFolder]:
    """Choose the folders. Gmail shows a message in a folder for each of its labels: one folder has them all."""
    folders = [
        listed_folder
        for listed_folder in listed_folders(_answers(client.list()))
        if _LEFT_OUT.isdisjoint(listed_folder.flags)
    ]
    wanted = [name.strip() for name in (settings.get("folders") or "").split(",") if name.strip()]
    if wanted:
        missing = set(wanted) - {folder.name for folder in folders}
        if missing:
            raise ConfigInvalid(f"The account has no folder '{min(missing)}'.", hint="Correct 'folders'.")
        return [folder for folder in folders if folder.name in wanted]
    everything = [folder for folder in folders if "\\all" in folder.flags]
    if everything and _GMAIL in client.capabilities:
        return everything
    # A copy of a message changes where its record says it lies: the folder that has all comes first.
    others = [
        folder for folder in folders if folder not in everything and _THROWN_AWAY.isdisjoint(folder.flags)
    ]
    return [*everything, *others]


class _Folder:
    def __init__(self, client: imaplib.IMAP4, folder: ImapFolder, mark: Any, parser: AccountParser) -> None:
        self._client = client
        self._folder = folder
        self._parser = parser
        self._bytes = 0
        self._mark: Mapping[str, Any] = mark or {}
        self._is_gmail = _GMAIL in client.capabilities

    def items(self) -> Iterator[Item | ImportPart]:
        """Yield the messages whose flags changed, then those after the mark, oldest first."""
        _answers(self._client.select(quoted(self._folder.wire_name), readonly=True))
        validity, following = self._number("UIDVALIDITY"), min(self._number("UIDNEXT"), _LAST_UID)
        change = self._number("HIGHESTMODSEQ")
        is_known = self._mark.get("uidvalidity") == validity
        last, seen = (int(self._mark.get(name, 0)) if is_known else 0 for name in ("uid", "change"))
        resume = {"uidvalidity": validity, "uid": last, "change": change}
        if 0 < seen < change:
            for uids in self._found(1, last + 1, f" MODSEQ {seen + 1}"):
                yield from self._read(uids)
        for uids in self._found(last + 1, following):
            yield from self._read(uids)
            resume = {**resume, "uid": uids[-1]}
            yield Mark(self._folder.name, self._bytes, resume)
        yield Mark(self._folder.name, self._bytes, resume)

    def _read(self, uids: Sequence[int]) -> Iterator[Item | ImportPart]:
        for message in self._fetched(uids):
            yield from self._item(message)

    def _number(self, name: str) -> int:
        """Return a number that the server gave when the folder was opened; 0 if it did not."""
        _, values = self._client.response(name)
        return int(values[-1]) if values and isinstance(values[-1], bytes) else 0

    def _found(self, begin: int, end: int, condition: str = "") -> Iterator[list[int]]:
        for first in range(begin, end, _SEARCHED_UIDS):
            last = min(first + _SEARCHED_UIDS, end) - 1
            (line, *_) = _answers(self._client.uid("SEARCH", f"UID {first}:{last}{condition}"))
            # The answer may end with the change number, and an empty range names the last message all the same.
            numbers = (line or b"").partition(b"(")[0].split()
            uids = sorted(uid for uid in map(int, numbers) if first <= uid <= last)
            for at in range(0, len(uids), _LISTED_MESSAGES):
                yield uids[at : at + _LISTED_MESSAGES]

    def _fetched(self, uids: Sequence[int]) -> Iterator[FetchedMessage]:
        """Fetch messages, as many at once as are small together."""
        listed = fetched(_answers(self._client.uid("FETCH", _set(uids), "(UID FLAGS RFC822.SIZE)")))
        sizes = {message.uid: message.size or 0 for message in listed}
        together: list[int] = []
        for uid in uids:
            if together and sum(sizes.get(other, 0) for other in (*together, uid)) > _FETCHED_BYTES:
                yield from self._contents(together)
                together = []
            if sizes.get(uid, 0) > MAX_MESSAGE_BYTES:
                yield FetchedMessage(uid, frozenset(), sizes[uid], None, None, ())
            else:
                together.append(uid)
        if together:
            yield from self._contents(together)

    def _contents(self, uids: Sequence[int]) -> list[FetchedMessage]:
        more = " X-GM-THRID X-GM-LABELS" if self._is_gmail else ""
        answers = _answers(self._client.uid("FETCH", _set(uids), f"(UID FLAGS{more} BODY.PEEK[])"))
        # An answer without content is a change of flags that the server reports unasked.
        return [message for message in fetched(answers) if message.content is not None]

    def _item(self, message: FetchedMessage) -> Iterator[Item | ImportPart]:
        place = f"{self._folder.name}, message {message.uid}"
        if message.content is None:
            yield Reject(place, f"The message is larger than {MAX_MESSAGE_BYTES // 1024 // 1024} MB.")
            return
        self._bytes += len(message.content)
        if message.content.strip() and "\\deleted" not in message.flags:
            state = {
                "folder": self._folder.name,
                "labels": list(message.labels),
                "is_read": "\\seen" in message.flags,
                "is_flagged": "\\flagged" in message.flags,
                "thread": message.thread,
            }
            yield from self._parser.parts(
                ReadFetched(kind="message", place=place, content=message.content, facts=state)
            )


def _set(uids: Sequence[int]) -> str:
    return ",".join(map(str, uids))


def _answers(answer: tuple[str, Sequence[Any]]) -> Sequence[Any]:
    status, values = answer
    if status != "OK":
        raise imaplib.IMAP4.error(
            b" ".join(value for value in values if isinstance(value, bytes)).decode("utf-8", "replace")
        )
    return values
