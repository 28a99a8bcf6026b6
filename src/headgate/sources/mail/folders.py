"""Which folder a file of mail is, and what its name says of a message."""

from __future__ import annotations

import re
from enum import Enum, auto
from pathlib import PurePosixPath

from headgate.sources.cleaning import clean
from headgate.sources.inputs.tree import InputFile
from headgate.sources.mail.mbox import is_mbox

INBOX = "Inbox"
_MAILDIR = frozenset({"cur", "new"})
#: Names of a Maildir that is an account, not a folder of one.
_ACCOUNTS = frozenset({"", "mail", "maildir", ".maildir"})
_MAILDIR_NAME = re.compile(r"\d+\..+|.*[:!;]2,[A-Za-z]*")
_HEADER = re.compile(rb"[!-9;-~]{1,200}:")
#: Files that lie beside mailboxes and never are some; they are not opened.
_OTHERS = frozenset(
    {
        ".csv",
        ".dat",
        ".html",
        ".ics",
        ".jpg",
        ".json",
        ".md",
        ".msf",
        ".pdf",
        ".png",
        ".py",
        ".vcf",
        ".xml",
        ".zip",
    }
)
#: How mail programs end the names of files and directories that hold mail.
_ENDING = re.compile(r"\.(?:mbox|mbx|sbd|partial)$", re.IGNORECASE)


class MailFile(Enum):
    """How messages lie in a file."""

    MBOX = auto()
    MAILDIR = auto()
    EML = auto()
    #: A message of Apple Mail: its length, the message, and a property list.
    EMLX = auto()


def kind_of(file: InputFile) -> MailFile | None:
    """Recognise a file of mail by its name, and by its beginning where the name leaves it open."""
    path = PurePosixPath(file.name)
    if file.suffix == ".eml":
        return MailFile.EML
    if file.suffix == ".emlx":
        return MailFile.EMLX
    if path.parent.name in _MAILDIR and _MAILDIR_NAME.fullmatch(path.name):
        return MailFile.MAILDIR
    return MailFile.MBOX if file.suffix not in _OTHERS and is_mbox(file.head) else None


def folder_of(name: str, kind: MailFile) -> str | None:
    """Name the folder of a file as its owner sees it; None if single messages lie in no folder."""
    path = PurePosixPath(clean(name))
    if kind is MailFile.MAILDIR:
        # Maildir++ names a folder inside another one ".Work.Invoices"; the account itself is the inbox.
        own = path.parent.parent.name
        if own.startswith("."):
            return own.strip(".").replace(".", "/")
        return INBOX if own.lower() in _ACCOUNTS else own
    if kind is not MailFile.MBOX:
        parts = [_ENDING.sub("", part) for part in path.parent.parts if part not in {"Messages", "Data"}]
        return "/".join(parts) or None
    # Apple Mail exports a directory "Work.mbox" with a file "mbox".
    parts = path.parent.parts if path.name == "mbox" and path.parent.name else path.parts
    above = [part for part in parts[:-1] if part.endswith((".sbd", ".mbox"))]
    return "/".join(_ENDING.sub("", part) for part in (*above, parts[-1]))


def maildir_flags(name: str) -> str:
    """Return the letters after ``2,``: F flagged, S seen, R replied, T deleted, D draft."""
    match = re.search(r"[:!;]2,([A-Za-z]*)$", name)
    return match.group(1) if match else ""
