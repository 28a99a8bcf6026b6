"""Plans: reads that the store executes. A plan has passed every access rule; the store applies none.

A plan holds concrete terms alone (these connections, these fields, these bounds), so the store needs no
grant, and nothing outside a plan's reach can be selected, compared, counted or ranked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from headgate.errors import InvalidRequest
from headgate.model.asked import Asked
from headgate.model.declaration import Cardinality
from headgate.model.grant import TimeConstraint
from headgate.model.ids import BlobId, ConnectionId, FieldName, RecordId, StreamName
from headgate.model.query import (
    Count,
    ExtractType,
    Filter,
    Granularity,
    Metric,
    Order,
    SearchMode,
    SearchSort,
)

#: How much of each field the line of a record shows, and how much of a text a hit shows where it has no line.
LINE_CHARS = 256
SNIPPET_CHARS = 100
#: How much of a text the first hits of a page for a model show: most messages are whole with that.
HIT_CHARS = 480
#: How long a bookmark of changes stays valid; the store may discard older changes.
BOOKMARK_DAYS = 180


class Reach(msgspec.Struct, frozen=True, cache_hash=True):
    """The part of one stream that a plan may touch."""

    stream: StreamName
    connection_ids: tuple[ConnectionId, ...]
    #: What may be selected; also the only fields whose change makes a record count as changed.
    fields: tuple[FieldName, ...]
    time: TimeConstraint | None = None
    resources: frozenset[RecordId] | None = None
    #: All fields that the reader may ever see: records are dated by their last change in these. None: by any change.
    visible: tuple[FieldName, ...] | None = None
    #: Whether it covers what a rule of the owner hides from every client.
    with_hidden: bool = False


class Position(msgspec.Struct, frozen=True):
    """A place in a stream's order: after this record."""

    #: The cursor field's stored value; None where it is missing or hidden from the reader.
    sort: int | float | str | None
    record_id: RecordId
    connection_id: ConnectionId


class ExpandPlan(msgspec.Struct, frozen=True):
    """Children to bring along: those of the child reach whose field holds the parent's key."""

    name: str
    child: Reach
    foreign_key: FieldName
    cardinality: Cardinality
    limit: int
    #: False when the reader may not see the children's cursor field: then the key alone gives their order.
    by_cursor_field: bool = True


class RecordPlan(msgspec.Struct, frozen=True):
    """Find one record; every connection of the reach that has it answers."""

    reach: Reach
    record_id: RecordId
    expand: tuple[ExpandPlan, ...] = ()
    #: Longer texts are cut to so many characters and listed in the record's previews; None returns them whole.
    preview_chars: int | None = None


class KeyPlan(msgspec.Struct, frozen=True):
    """Find the whole key of a visible record by its beginning and its digest."""

    reach: Reach
    beginning: RecordId
    digest: bytes


class PagePlan(msgspec.Struct, frozen=True):
    """Read a page in the stream's order, merged over all connections of the reach."""

    reach: Reach
    limit: int
    order: Order = Order.DESC
    #: False when the reader may not see the cursor field: then the key alone gives the order.
    by_cursor_field: bool = True
    filters: tuple[Filter, ...] = ()
    after: Position | None = None
    count: Count = Count.NONE
    with_extent: bool = False
    expand: tuple[ExpandPlan, ...] = ()
    preview_chars: int | None = None
    #: The page ends before its records take more than this, but not before the first.
    page_bytes: int | None = None


class ChangesPlan(msgspec.Struct, frozen=True):
    """Read what changed, for this reach, after one change number and up to another."""

    reach: Reach
    limit: int
    since: int
    #: The last change number of this session; None on its first page, which then fixes it.
    horizon: int | None = None
    after: int | None = None
    preview_chars: int | None = None
    page_bytes: int | None = None


class TimeGroups(msgspec.Struct, frozen=True):
    """Group by a bucket of time in a time zone."""

    field: FieldName
    granularity: Granularity
    time_zone: str


class WordCondition(msgspec.Struct, frozen=True):
    """Only records that hold all terms, each in any of these of their granted fields."""

    terms: tuple[Term, ...]
    search_fields: tuple[FieldName, ...]
    #: Those of them whose text is quoted: a record that holds a term only there does not count.
    quoted_fields: tuple[FieldName, ...] = ()


class TextValue(msgspec.Struct, frozen=True):
    """The first value of a type after a phrase, in the first of these granted fields that has one."""

    phrase: Term
    type: ExtractType
    search_fields: tuple[FieldName, ...]


class AggregatePlan(msgspec.Struct, frozen=True):
    """Compute a number over the reach, or one for each group."""

    reach: Reach
    metric: Metric
    field: FieldName | None = None
    group_by: FieldName | TimeGroups | None = None
    #: Divides the groups of a field's values further, by time.
    then_by: TimeGroups | None = None
    filters: tuple[Filter, ...] = ()
    limit: int = 10
    words: WordCondition | None = None
    #: What the metric is of, in place of a field.
    extract: TextValue | None = None

    @property
    def reads_texts(self) -> bool:
        """Whether words are looked for."""
        return self.words is not None or self.extract is not None

    @property
    def has_values(self) -> bool:
        """Whether it is computed from a value of each record."""
        return self.field is not None or self.extract is not None


class SearchReach(msgspec.Struct, frozen=True):
    """One stream to search: only these of its granted fields match, rank and give snippets.

    The reach's fields are what a hit brings along of its record.
    """

    reach: Reach
    search_fields: tuple[FieldName, ...]
    #: Whether the reader may see the records' times: else these have no part in the order.
    shows_time: bool = True
    #: The fields that are compared by meaning.
    meaning_fields: tuple[FieldName, ...] = ()
    #: Those of the search fields whose text is quoted: records that hold words only there are counted apart.
    quoted_fields: tuple[FieldName, ...] = ()
    #: Those of the search fields that say who a record is from.
    sender_fields: tuple[FieldName, ...] = ()
    #: Whether its times are points in time; else they are what a clock showed, wherever that was.
    has_instants: bool = True


class TimeSpan(msgspec.Struct, frozen=True):
    """A span of time in microseconds since 1970, the end left out: in the owner's zone, and as a clock showed it."""

    since: int | None
    until: int | None
    shown_since: int | None
    shown_until: int | None


class Term(msgspec.Struct, frozen=True):
    """A word, the beginning of a word, or several words in a row."""

    words: tuple[str, ...]
    is_prefix: bool = False
    #: In quotes: only these words in this order, in no other form.
    is_strict: bool = False
    #: No hit may hold it.
    is_excluded: bool = False
    #: Any of these will do as well.
    alternatives: tuple[Term, ...] = ()


class SearchPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in the order of hits: after this one. Its content is private to the store engine."""

    place: tuple[int | str | None, ...]
    #: How the question was taken on the first page: what today is changes.
    asked: Asked | None = None


class SearchPlan(msgspec.Struct, frozen=True):
    """Find the records that hold all terms, each term in any of the search fields.

    If that gives less than a page, records with most of the terms follow. By meaning, the terms make one text, and
    records with a similar text are found; of the terms, only those in quotes and those excluded decide by themselves.
    """

    reaches: tuple[SearchReach, ...]
    terms: tuple[Term, ...]
    #: 0 only counts the matches.
    limit: int
    filters: tuple[Filter, ...] = ()
    after: SearchPosition | None = None
    preview_chars: int | None = None
    sort: SearchSort = SearchSort.RELEVANCE
    mode: SearchMode = SearchMode.LEXICAL
    #: In place of both by words alone, while vectors of visible text are still to be made.
    or_words: bool = False
    #: So many more hits are read, for a page on which hits that are alike count as one.
    ahead: int = 0
    #: How much of a text is shown around a match.
    snippet_chars: int = SNIPPET_CHARS
    #: Only records of any of these spans; none: of any time.
    spans: tuple[TimeSpan, ...] = ()
    #: Only records whose sender holds this word.
    sender: str | None = None

    @property
    def most_hits(self) -> int:
        """How many hits are read at most."""
        return self.limit + self.ahead if self.limit else 0


class OffsetWindow(msgspec.Struct, frozen=True):
    """The part of a field that starts at a character."""

    offset_chars: int
    limit_chars: int


class MatchWindow(msgspec.Struct, frozen=True):
    """The part of a field around the first place where the text occurs, whatever its case."""

    q: str
    before_chars: int
    limit_chars: int


class WindowPlan(msgspec.Struct, frozen=True):
    """Read a part of one field of one record."""

    reach: Reach
    record_id: RecordId
    field: FieldName
    window: OffsetWindow | MatchWindow
    #: Whether an object or a list has windows, into its JSON text.
    as_json: bool = False


class BlobPlan(msgspec.Struct, frozen=True):
    """Find a file through the visible records whose granted fields refer to it."""

    reaches: tuple[Reach, ...]
    blob_id: BlobId


MAX_TERMS = 64
MAX_QUERY_CHARS = 512
MAX_PHRASE_CHARS = 100
#: A word or a phrase of a query, with the dash before it.
PIECE = re.compile(r'(-?)"([^"]*)"?|([^\s"]+)')
_OR = "OR"


def parse_terms(q: str) -> tuple[Term, ...]:
    """Take a query apart; every character that has no meaning in its place means itself."""
    if len(q) > MAX_QUERY_CHARS:
        raise InvalidRequest(f"The query must have at most {MAX_QUERY_CHARS} characters.", param="q")
    terms = tuple(_joined(term for piece in PIECE.finditer(q) if (term := _term(piece)) is not None))
    if all(term.is_excluded for term in terms):
        raise InvalidRequest("The query must hold at least one word.", param="q")
    if sum(1 + len(term.alternatives) for term in terms) > MAX_TERMS:
        raise InvalidRequest(f"The query must hold at most {MAX_TERMS} words or phrases.", param="q")
    return terms


def phrase_of(after: str) -> Term:
    """Read the phrase that a value follows."""
    words = tuple(after.split())
    if len(after) > MAX_PHRASE_CHARS or not _has_word(words):
        raise InvalidRequest(
            f"after needs a word, and has at most {MAX_PHRASE_CHARS} characters.", param="extract"
        )
    return Term(words, is_strict=True)


def _term(piece: re.Match[str]) -> Term | None:
    dash, phrase, word = piece.groups()
    if phrase is not None:
        words = tuple(phrase.split())
        return Term(words, is_strict=True, is_excluded=bool(dash)) if _has_word(words) else None
    is_excluded = word.startswith("-") and word[1:2].isalnum()
    bare = word[1:] if is_excluded else word
    stem = bare.rstrip("*")
    return Term((stem,), is_prefix=stem != bare, is_excluded=is_excluded) if _has_word((stem,)) else None


def _joined(terms: Iterable[Term]) -> Iterable[Term]:
    """Put terms with OR between them together; at the beginning and the end of a query it is a word."""
    joined: list[Term] = []
    waiting: Term | None = None
    for term in terms:
        if waiting is not None:
            if term.is_excluded:
                joined += [waiting, term]
            else:
                joined[-1] = replace(joined[-1], alternatives=(*joined[-1].alternatives, term))
            waiting = None
        elif term.words == (_OR,) and not term.is_strict and joined and not joined[-1].is_excluded:
            waiting = term
        else:
            joined.append(term)
    return joined if waiting is None else [*joined, waiting]


def _has_word(words: tuple[str, ...]) -> bool:
    return any(character.isalnum() for word in words for character in word)
