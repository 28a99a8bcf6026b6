"""Values in texts: the first number or date after a phrase, in the searched fields of some records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headgate.errors import IntegrityBroken, ResourceLimit
from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import TextValue
from headgate.model.query import ExtractType
from headgate.store.format.records import CHUNK_CHARS, long_notes, searched_text_in
from headgate.store.format.written import LONGEST_CHARS, NEAR_CHARS, first_date, first_number
from headgate.store.queries.aggregates import ReadValue
from headgate.store.queries.rows import FoundRow, read_chunks, readable_keys, readable_rows
from headgate.store.search.snippets import Highlighter
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database

#: How many records, and how many characters of their texts, one aggregate reads: they take a few seconds.
RECORDS_MOST = 10_000
CHARS_MOST = 32_000_000
_AT_ONCE = 500
#: A piece of a long text goes on so far behind its end: a phrase and its value may begin before it.
_OVERLAP_CHARS = 2 * (NEAR_CHARS + LONGEST_CHARS)


class ValueReader:
    """Reads the values of one aggregate."""

    def __init__(self, database: Database, catalog: Catalog, wanted: TextValue) -> None:
        self._database = database
        self._catalog = catalog
        self._wanted = wanted
        self._phrase = Highlighter([wanted.phrase])
        self._left = CHARS_MOST
        #: The records that could not be read.
        self.damaged: list[RecordId] = []

    def read(self, rids: Sequence[int]) -> Mapping[int, ReadValue]:
        """Read the values of those of some records that have one."""
        values: dict[int, ReadValue] = {}
        for some in _batched(rids):
            rows = readable_rows(self._database, some)
            lost = [rid for rid in some if rid not in rows]
            for rid in some:
                try:
                    value = self._of_row(FoundRow._make(rows[rid])) if rid in rows else None
                except IntegrityBroken:
                    lost.append(rid)
                    continue
                if value is not None:
                    values[rid] = value
            if lost:
                self.damaged += readable_keys(self._database, lost).values()
        return values

    def _of_row(self, row: FoundRow) -> ReadValue | None:
        values = (
            value
            for name in self._wanted.search_fields
            for text, end in self._pieces(row, name)
            if (value := self._first(text, end)) is not None
        )
        return next(values, None)

    def _pieces(self, row: FoundRow, name: FieldName) -> Iterator[tuple[str, int]]:
        """Read the text of a field, a long one piece by piece; and where in it a phrase may begin."""
        note = long_notes(row.long).get(name)
        if note is None:
            text = "" if row.body is None else searched_text_in(row.body, name)
            self._take(len(text))
            yield text, len(text)
            return
        fid = self._catalog.by_sid[row.sid].stream.fids[name]
        for start in range(0, note[0], CHUNK_CHARS):
            end = min(start + CHUNK_CHARS + _OVERLAP_CHARS, note[0])
            self._take(end - start)
            yield read_chunks(self._database, row.rid, fid, start, end), CHUNK_CHARS

    def _take(self, chars: int) -> None:
        self._left -= chars
        if self._left < 0:
            raise ResourceLimit(
                f"The texts of these records have more than {CHARS_MOST} characters.",
                param="extract",
                hint="Narrow with filter, q, in or connection_id, and add the answers up.",
            )

    def _first(self, text: str, end: int) -> ReadValue | None:
        for start, behind in self._phrase.spans(text):
            if start >= end:
                return None
            value = self._value(text, behind)
            if value is not None:
                return value
        return None

    def _value(self, text: str, at: int) -> ReadValue | None:
        if self._wanted.type is ExtractType.NUMBER:
            return first_number(text, at)
        day = first_date(text, at)
        return None if day is None else day.toordinal()


def _batched(rids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(rids), _AT_ONCE):
        yield rids[start : start + _AT_ONCE]
