"""What the store returns for a plan: rows that the reading package turns into an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from headgate.model.ids import BlobId, ConnectionId, FieldName, RecordId, StreamName
from headgate.model.plan import Position, SearchPosition
from headgate.model.query import Scalar, SearchMode
from headgate.model.record import Record, Tombstone


@dataclass(frozen=True, slots=True)
class Extent:
    """How many records a page is cut from, and the times they span."""

    total: int
    #: Microseconds since 1970; None when no record has a time.
    earliest: int | None
    latest: int | None


class Page(msgspec.Struct, frozen=True):
    """Records in order, and where the next page starts."""

    records: tuple[Record, ...]
    #: None on the last page.
    next: Position | None
    count: int | None = None
    extent: Extent | None = None
    #: Whether it ends before the limit, because its records are large.
    is_cut: bool = False
    #: Records that belong here and are left out, because they are not what was stored.
    damaged: tuple[RecordId, ...] = ()


class Changes(msgspec.Struct, frozen=True):
    """What changed, and where the session and the next session go on."""

    entries: tuple[Record | Tombstone, ...]
    #: The change number that this session ends at, and the next one starts from.
    horizon: int
    #: Where the next page of this session starts; None on its last page.
    next: int | None
    #: Whether it ends before the limit, because its records are large.
    is_cut: bool = False
    #: Records that belong here and are left out, because they are not what was stored.
    damaged: tuple[RecordId, ...] = ()


class Group(msgspec.Struct, frozen=True):
    """One group; its key is None for records that have no value there."""

    key: Scalar | None
    count: int
    #: What the metric gives for the group's records; None for a count, and where no record has a value.
    value: int | float | str | None = None
    #: The bucket of time, where records are grouped by a value and by time; None for records without a time.
    time: str | None = None
    #: How many of the group's records have no value to compute the metric from, and one that cannot be read.
    missing_count: int = 0
    unreadable_count: int = 0


class Aggregate(msgspec.Struct, frozen=True):
    """One number, or groups with what did not fit among them."""

    filtered_record_count: int
    #: Times are given as RFC 3339 text; None when there was nothing to compute it from.
    value: int | float | str | None = None
    groups: tuple[Group, ...] | None = None
    other_count: int = 0
    #: How many records have no value to compute the metric from; None where there is no metric.
    missing_count: int | None = None
    #: How many have one that cannot be read as the field's type, and so is not in the result either.
    unreadable_count: int | None = None
    #: How many records have a value in their texts; None where none was looked for.
    value_count: int | None = None
    #: How the words were understood that all these records hold; None where there were none.
    understood: Understood | None = None
    #: How many more records hold all of them, some only in quoted text; None where none is apart.
    quoted_count: int | None = None
    #: Whether the word index is still being filled: of the records that are not in it yet only some are counted.
    is_index_building: bool = False
    #: Records that have no value in the result, because they are not what was stored.
    damaged: tuple[RecordId, ...] = ()


class Snippet(msgspec.Struct, frozen=True):
    """The words around a match, with the matches in ``<mark>`` tags that always close."""

    field: FieldName
    text: str
    #: The snippet is the whole field.
    complete: bool
    #: Where the first match starts in the field, in characters.
    match_chars: int
    #: Where the snippet itself starts, and how many characters the field has; None where that is not known.
    start_chars: int = 0
    size_chars: int | None = None


class Hit(msgspec.Struct, frozen=True):
    """A record that holds the words, with the fields that were asked for along with it."""

    record: Record
    matched_fields: tuple[FieldName, ...]
    snippets: tuple[Snippet, ...]
    #: The time of the stream's cursor field, if it is a time and may be seen.
    authored_at: int | None = None
    #: The words of the query that the record does not hold; empty: it holds all.
    missing: tuple[str, ...] = ()
    #: What found it, and how good a match it is there; empty where only words were searched.
    scores: Mapping[SearchMode, float] = {}
    #: Where a page goes on that ends with this hit.
    place: SearchPosition | None = None
    #: Whether it holds a word only in text that it quotes.
    is_quoted: bool = False


class UnderstoodWord(msgspec.Struct, frozen=True):
    """A word of a query, and what of the visible text was taken for it."""

    word: str
    #: Other forms that occur: inflected, or completed from a beginning; the most frequent first.
    forms: tuple[str, ...] = ()
    #: Words that differ by one typing error: the word itself occurs nowhere.
    corrected: tuple[str, ...] = ()
    #: How many of the records that were searched hold it, in any of its forms, not only in quoted text; None where
    #: that was not counted.
    count: int | None = None
    #: How many more hold it only in quoted text.
    quoted_count: int = 0
    #: Of ``a OR b``: each alternative, and how many of the records hold it.
    alternatives: tuple[tuple[str, int], ...] = ()


class Understood(msgspec.Struct, frozen=True):
    """How a query was understood."""

    words: tuple[UnderstoodWord, ...] = ()
    #: Words that did not decide, because they carry no subject.
    left_out: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


class SearchPage(msgspec.Struct, frozen=True):
    """Hits in order, and whether all matches could be ranked."""

    hits: tuple[Hit, ...]
    next: SearchPosition | None
    #: How many records hold all the words in text that is not quoted; None on a later page.
    count: int | None
    #: False when only the newest matches were ranked, because there are too many.
    ranked_all: bool = True
    ranked_count: int | None = None
    #: How many more hold enough of the words, not quoted either; 0 where they were not looked for.
    partial_count: int = 0
    #: How many more hold all or enough of the words, some of them only in quoted text.
    quoted_count: int = 0
    understood: Understood = Understood()
    #: Records that belong here and are left out, because they are not what was stored.
    damaged: tuple[RecordId, ...] = ()
    #: Whether the word index is still being filled: of the records that are not in it yet only some are found.
    is_index_building: bool = False
    #: Whether the words stand in more places than one search reads: records may be missing or out of place.
    is_cut: bool = False
    #: How many visible records, or more, cannot be found by meaning yet, because their vectors are still to be made.
    pending_count: int = 0
    #: How matches were found: where both were wanted, it may have been by words alone.
    mode: SearchMode = SearchMode.LEXICAL
    #: Of hits by both, which are not counted: how many records hold all the words.
    matched_all: int | None = None


class FieldWindow(msgspec.Struct, frozen=True):
    """A part of one field's text."""

    connection_id: ConnectionId
    text: str
    start_chars: int
    total_chars: int
    #: SHA-256 of the whole field's UTF-8 text, in hex.
    digest: str
    match_start_chars: int | None = None
    match_end_chars: int | None = None
    #: The text is the JSON of an object or a list.
    is_json: bool = False

    @property
    def end_chars(self) -> int:
        """Where the window ends."""
        return self.start_chars + len(self.text)


@dataclass(frozen=True, slots=True)
class FoundBlob:
    """A file, and the visible record that refers to it."""

    id: BlobId
    connection_id: ConnectionId
    stream: StreamName
    record_id: RecordId
    field: FieldName
    mime_type: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ShelfSummary:
    """How much of one stream one connection holds, as far as a reach goes."""

    connection_id: ConnectionId
    stream: StreamName
    record_count: int
    #: Microseconds since 1970: when a record was last ingested; None for an empty shelf.
    last_updated: int | None
    #: The first and the last time of its visible records, where the field of the stream's order is a visible time.
    span: tuple[int, int] | None = None
    #: When a visible record last came or changed, as far as visible records tell.
    seen_at: int | None = None


@dataclass(frozen=True, slots=True)
class LineError:
    """Why one line of a batch was rejected, or is marked as invalid."""

    #: Which line, counted from 0.
    index: int
    code: str
    message: str
    #: A JSON pointer to the value at fault.
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The result of a batch. Valid lines are stored even if others are rejected."""

    accepted: int
    errors: tuple[LineError, ...] = ()
    #: Of the accepted lines, those that break the stream's schema and were kept with a mark.
    invalid: tuple[LineError, ...] = ()

    @property
    def rejected(self) -> int:
        """How many lines were rejected."""
        return len(self.errors)


class OnInvalid(StrEnum):
    """What becomes of a record that breaks its stream's schema."""

    REJECT = "reject"
    #: It is stored with a mark that the owner can list.
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of NDJSON for one stream of one connection, as they came in."""

    connection_id: ConnectionId
    stream: StreamName
    lines: Sequence[bytes]
    #: Microseconds since 1970: when the batch came in.
    received_at: int
    #: Makes a repeated batch answer as the first one did, instead of being taken again.
    idempotency_key: str | None = None
    on_invalid: OnInvalid = OnInvalid.REJECT


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """One place where a record breaks its stream's schema."""

    #: A JSON pointer from the line's root.
    pointer: str
    message: str
    #: The field, if its value cannot be read as the type it is compared by: aggregates leave it out.
    unreadable: FieldName | None = None


@dataclass(frozen=True, slots=True)
class MarkedRecord:
    """A record that is stored although it breaks its stream's schema."""

    id: RecordId
    problems: tuple[RecordProblem, ...]


@dataclass(frozen=True, slots=True)
class MarkedRecords:
    """Some marked records in the order they were first stored, and where the next ones start."""

    records: tuple[MarkedRecord, ...]
    next_after: int | None
