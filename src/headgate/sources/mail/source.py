"""The source of mail in files: mbox, Maildir, single messages, and the mail of a Takeout."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headgate.sources.declaring import StreamSpec, all_but, fields
from headgate.sources.inputs.tree import InputTree
from headgate.sources.mail.mbox import kind_of
from headgate.sources.protocol import Certainty, Item, Recognised, Source

_HEADERS = ("id", "thread_id", "subject", "from", "from_address", "to", "cc", "bcc", "sent_at")
_MESSAGE = fields(
    "id thread_id subject from from_address to:list cc:list bcc:list sent_at:time body quoted folder labels:list "
    "is_read:boolean is_flagged:boolean has_attachments:boolean size:integer internet_message_id in_reply_to"
)
_MESSAGES = StreamSpec(
    name="messages",
    label="Messages",
    detail="A mail: who wrote to whom and when, its subject and its text, with quoted replies apart.",
    fields=_MESSAGE,
    time="sent_at",
    times="UTC",
    title="subject",
    words=("subject", "from", "body", "quoted"),
    groups=("from", "from_address", "folder", "thread_id", "is_read", "is_flagged", "has_attachments"),
    views=(
        ("headers", "Headers only", _HEADERS),
        ("no_bodies", "No bodies", all_but(_MESSAGE, "body", "quoted")),
    ),
    children=(("attachments", "message_id"),),
)
_ATTACHMENTS = StreamSpec(
    name="attachments",
    label="Attachments",
    detail="A file that was sent with a mail, and the words in it.",
    fields=fields("id message_id name mime_type size:integer sent_at:time text file:file"),
    time="sent_at",
    times="UTC",
    title="name",
    words=("name", "text"),
    groups=("mime_type", "message_id"),
    views=(("names", "Names only", ("id", "message_id", "name", "mime_type", "size", "sent_at")),),
)
_THREADS = StreamSpec(
    name="threads",
    label="Threads",
    detail="Messages that answer each other.",
    fields=fields("id subject"),
    title="subject",
    words=("subject",),
    children=(("messages", "thread_id"),),
    # The first of a thread's messages names it; later ones change nothing.
    is_append_only=True,
    repeats="messages",
)


MAIL_STREAMS = (_MESSAGES, _ATTACHMENTS, _THREADS)

_GMAIL = b"X-Gmail-Labels:"
_RECEIVER = re.compile(
    rb"^(?:Delivered-To|X-Original-To):[ \t]*<?([^\s<>@]{1,64}@[A-Za-z0-9.-]{1,200})", re.MULTILINE
)
#: So many files are asked to whom their mail was delivered.
_ASKED_FILES = 20
#: Names of files that say no more than that they hold mail.
_BARE_LABELS = frozenset({"", "mail", "mails", "mbox", "messages"})


class MailSource(Source):
    name = "mail"
    title = "Mail"
    streams = MAIL_STREAMS
    plain_form = 2

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Recognise every file of mail; together they are one account."""
        files = [file for file in tree.files if kind_of(file) is not None]
        if not files:
            return ()
        heads = [file.head for file in files[:_ASKED_FILES]]
        certainty = Certainty.EXPORT if any(_GMAIL in head for head in heads) else Certainty.FORMAT
        title, *older = _titles(heads, tree.label)
        form = self.plain_form
        return (Recognised(self.name, title, files, certainty, older_titles=tuple(older), form=form),)

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        from headgate.sources.mail.rows import read_files  # noqa: PLC0415 - parsers of an extra

        unfinished = (file for file in recognised.files if resume.get(file.name, ()) is not None)
        return read_files(unfinished, resume)


def _titles(heads: Sequence[bytes], label: str) -> list[str]:
    """Name the account, or the file where most mails do not say to whom they came; then what it was called before."""
    receivers = Counter(address.decode().lower() for head in heads for address in _RECEIVER.findall(head))
    by_label = "Mail" if label.lower() in _BARE_LABELS else f"Mail from {label}"
    if not receivers:
        return [by_label]
    (address, count), *_ = receivers.most_common(1)
    by_receiver = f"Mail of {address}"
    return [by_receiver] if 2 * count > receivers.total() else [by_label, by_receiver]


MAIL = MailSource()
