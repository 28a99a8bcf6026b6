"""What a source is: it recognises files, declares what records they hold, and reads them.

A source does no network or store access while it reads files: it takes a tree of files and gives values. The importer
runs it in a process for each import, stores what it gives and remembers how far it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from headgate.errors import InvalidRequest
from headgate.sources.declaring import StreamSpec, declaration
from headgate.sources.formats.values import plain_id
from headgate.sources.inputs.tree import InputFile, InputTree

if TYPE_CHECKING:
    from headgate.sources.parts import ImportPart


class Certainty(IntEnum):
    """How sure a source is of a file; the surest source reads it."""

    #: Any file of this kind, such as a table with unknown columns.
    GENERIC = 1
    #: The format is right: a calendar, a mailbox.
    FORMAT = 2
    #: The format and the program that wrote it are known: a chat export of Slack.
    EXPORT = 3


@dataclass(frozen=True, slots=True)
class Recognised:
    """Files that belong together and become one connection."""

    #: The source's name.
    source: str
    #: What a person would call the connection: "Mail of ada@example.org", "Statement 2026".
    title: str
    files: Sequence[InputFile]
    certainty: Certainty
    #: What the source found out while it recognised the files, and needs again to read them.
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    #: For a source whose declarations differ from file to file, such as tables: the connector's key is the source's
    #: name and this. Lower case, digits, ``-``.
    variant: str = ""
    #: The variant that the files had in an older form, if it was another: a connection of that one is used if there is one.
    older_variant: str = ""
    #: What the connection was called in earlier versions; one that has such a name is used if none has the title.
    older_titles: Sequence[str] = ()
    #: In which form records are named; a source that names them otherwise than before recognises files in a higher one. A
    #: connection is read in the form in which it was made, so that importing again into an older one adds nothing.
    form: int = 1


@dataclass(frozen=True, slots=True)
class FileQuestion:
    """What only the person knows of a file; asked on a terminal before it is imported."""

    file: str
    #: To be answered with yes or no.
    text: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """The content of a file that belongs to a record; stored as a blob."""

    content: bytes
    mime_type: str


@dataclass(frozen=True, slots=True)
class Row:
    """One record to store. Its key is in its data, and the same row of the same file has the same key."""

    stream: str
    data: Mapping[str, Any]
    #: Files by the field that will refer to them.
    attachments: Mapping[str, Attachment] = field(default_factory=dict[str, Attachment])
    #: Where it was read, for the report if the store rejects it: as in `Reject`.
    place: str = ""


@dataclass(frozen=True, slots=True)
class Reject:
    """A part of a file that could not be read; the rest goes on."""

    #: Where: the file, and a line, message or entry number if there is one.
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Removal:
    """A record that an account no longer has. Only a live source gives it, after the rows of the same part."""

    stream: str
    #: The values of the key's fields, in their order.
    key: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Mark:
    """A checkpoint: everything before it has been given, so that reading can begin here after an interruption."""

    file: str
    #: Bytes of the file that are done, for the progress.
    done_bytes: int
    #: What the source needs to begin here; JSON. None: the file is done.
    resume: Any = None


@dataclass(frozen=True, slots=True)
class Covered:
    """A period of which every record of a stream is there, such as that of a bank statement."""

    stream: str
    #: Of which part of the source, such as a bank account; all that is stored is of these parts.
    part: str = ""
    #: Days. None: from the beginning on, or up to when reading began.
    start: str | None = None
    end: str | None = None


#: What reading a file gives, and what reading gives.
FileItem = Row | Reject | Covered
Item = FileItem | Removal | Mark


#: The fields of the built-in sources that hold the key of a record, of this stream or of another.
ID_FIELDS = (
    *("id", "account_id", "answers_id", "channel_id", "conversation_id", "document_id"),
    *("message_id", "parent_id", "series_id", "thread_id"),
)


def plain_row(row: Row) -> Row:
    """Name a row, and those that it refers to, so that every id can carry their keys."""
    ids = {name: plain_id(value) for name in ID_FIELDS if isinstance(value := row.data.get(name), str)}
    return replace(row, data={**row.data, **ids}) if any(row.data[name] != ids[name] for name in ids) else row


class Source:
    #: The name in commands, and the beginning of the connector's key: lower case, digits, ``-``.
    name: str
    #: What a person calls it.
    title: str
    streams: Sequence[StreamSpec]
    #: Since this form of names (see `Recognised.form`) every id can be part of the id of a result; 0: it always could, or
    #: ids are what the files hold.
    plain_form: int = 0

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Recognise what of a tree this source reads; looks at names and at the heads of files only."""
        raise NotImplementedError

    def prepared(self, recognised: Recognised) -> Recognised:
        """Complete what was recognised, before anything else is done with it; may read the files once."""
        return recognised

    def plain(self, row: Row) -> Row:
        """Name a row as connections of the plain form do."""
        return plain_row(row)

    def corrected(self, recognised: Recognised, corrections: Mapping[str, Any]) -> Recognised:
        """Apply a person's corrections of types, keys and uses of fields."""
        del recognised, corrections
        raise InvalidRequest(
            f"The source '{self.name}' declares what it reads itself.", hint="Leave out the corrections."
        )

    def questions(self, recognised: Recognised) -> Sequence[FileQuestion]:
        """Return what a person should be asked of the files."""
        del recognised
        return ()

    def answered(self, recognised: Recognised, answers: Mapping[str, bool]) -> Recognised:
        """Apply the answers to questions, by the names of their files."""
        del answers
        return recognised

    def declare(self, recognised: Recognised) -> Mapping[str, Any]:
        """Make the source declaration: the same document for files with the same streams and fields."""
        del recognised
        return declaration(self.name, self.title, self.streams)

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read the records, in memory bounded by a constant.

        `resume` has, for each file that was begun, the last mark's `resume`; a file with the value None is done and is
        skipped. Bad content gives a `Reject`, never an exception.
        """
        raise NotImplementedError


class LiveSource:
    """A kind of data that is fetched from an account, again and again.

    Its settings are texts that the owner gives once (``host=imap.example.org``); they are stored with the connection
    and hold no secret: a password or token is looked up by them when it is needed.
    """

    #: The connector's key: lower case, digits, ``-``.
    name: str
    #: What a person calls it.
    title: str
    #: By name, each with one sentence; a sentence that ends with ``(optional)`` needs no value.
    settings: Mapping[str, str]
    streams: Sequence[StreamSpec]
    #: As in `Source`.
    plain_form: int = 0

    def prepared(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Return the settings as they are to be stored."""
        return settings

    def variant(self, settings: Mapping[str, str]) -> str:
        """Return a word that is added to the connector's key, for a source whose declarations differ."""
        del settings
        return ""

    def label(self, settings: Mapping[str, str]) -> str:
        """Name the connection of these settings: "Mail of ada@example.org"."""
        raise NotImplementedError

    def declare(self, settings: Mapping[str, str]) -> Mapping[str, Any]:
        """Make the source declaration."""
        del settings
        return declaration(self.name, self.title, self.streams)

    def sync(self, settings: Mapping[str, str], state: Mapping[str, Any]) -> Iterator[Item | ImportPart]:
        """Fetch what is new, in memory bounded by a constant.

        A mark's `file` is a part of the account, such as a folder; `state` has the last mark's `resume` for each part
        that was ever begun. An account that cannot be reached raises a `HeadgateError`.
        """
        raise NotImplementedError
