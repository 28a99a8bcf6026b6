"""The source of mail in files: mbox, Maildir, single messages, and the mail of a Takeout."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.mail.declared import mail_declaration
from headgate.sources.mail.folders import kind_of
from headgate.sources.protocol import Certainty, Item, Recognised

_GMAIL = b"X-Gmail-Labels:"
_RECEIVER = re.compile(
    rb"^(?:Delivered-To|X-Original-To):[ \t]*<?([^\s<>@]{1,64}@[A-Za-z0-9.-]{1,200})", re.MULTILINE
)
#: So many files are asked to whom their mail was delivered.
_ASKED_FILES = 20
#: Names of files that say no more than that they hold mail.
_BARE_LABELS = frozenset({"", "mail", "mails", "mbox", "messages"})


class MailSource:
    """Mail in files."""

    name = "mail"
    title = "Mail"

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Recognise every file of mail; together they are one account."""
        files = [file for file in tree.files if kind_of(file) is not None]
        if not files:
            return ()
        heads = [file.head for file in files[:_ASKED_FILES]]
        certainty = Certainty.EXPORT if any(_GMAIL in head for head in heads) else Certainty.FORMAT
        return (Recognised(self.name, _title(heads, tree.label), files, certainty),)

    def declare(self, found: Recognised) -> Mapping[str, Any]:
        """Make the declaration, which is the same for all mail."""
        del found
        return mail_declaration(self.name, self.title)

    def read(self, found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read the messages of one file after the other."""
        from headgate.sources.mail.reading import read_files  # noqa: PLC0415 - parsers of an extra

        return read_files(_unfinished(found.files, resume), resume)


def _unfinished(files: Sequence[InputFile], resume: Mapping[str, Any]) -> Iterator[InputFile]:
    return (file for file in files if not (file.name in resume and resume[file.name] is None))


def _title(heads: Sequence[bytes], label: str) -> str:
    receivers = Counter(found.decode().lower() for head in heads for found in _RECEIVER.findall(head))
    if receivers:
        return f"Mail of {receivers.most_common(1)[0][0]}"
    return "Mail" if label.lower() in _BARE_LABELS else f"Mail from {label}"


MAIL = MailSource()
