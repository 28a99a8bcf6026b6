"""Make vectors in portions: read some texts, embed them outside of any transaction, and put the vectors in.

A shelf notes up to which record its vectors are made; a text that changes after that is noted as stale, in the
transaction that changes it. So the texts that wait need no list, and a process that is stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headgate.store.changes.stored_rows import values_of
from headgate.store.format.projection import searched_text
from headgate.store.format.row_numbers import RID_SHIFT
from headgate.store.format.streams import Shelf
from headgate.store.models.model import MeaningModel, ModelIdentity
from headgate.store.models.passages import passages
from headgate.store.sql.catalog import Catalog, current
from headgate.store.sql.database import Database
from headgate.store.sql.vector_blocks import PassageVector, delete_vectors, fids_key, replace_rows

#: At most so many records and characters make a portion: a second of work, about, with the default model.
RECORDS_AT_ONCE = 64
_CHARS_AT_ONCE = 60_000
_N_MASK = (1 << RID_SHIFT) - 1


class ShelfState(NamedTuple):
    """By which model, and of which fields, the vectors of a shelf are made, and up to which of its records."""

    model: str
    fids: str
    filled: int


class TextToEmbed(NamedTuple):
    """The text of one field of one record."""

    rid: int
    fid: int
    time: int | None
    #: The record's change number, or None if the record is gone.
    seq: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Portion:
    """Some texts of one shelf, and what its state is to be after them."""

    sid: int
    before: ShelfState | None
    after: ShelfState
    texts: Sequence[TextToEmbed]

    @property
    def begins(self) -> bool:
        """The vectors of the shelf are made by another model, or of other fields, or not at all."""
        return self.before is None or self.before[:2] != self.after[:2]


def model_key(identity: ModelIdentity) -> str:
    """Name a model as the store notes it."""
    return f"{identity.name} {identity.digest} {identity.dimensions}"


def next_portion(database: Database, catalog: Catalog, model: str) -> Portion | None:
    """Find texts whose vectors are to be made; None if all are made."""
    for sid, total, *state in database.all(database.sql["vector_shelves"]):
        shelf = catalog.by_sid.get(sid)
        if shelf is None or not (fids := shelf.stream.with_vectors):
            continue
        wanted = ShelfState(model, fids_key(fids.values()), 0)
        known = None if state[0] is None else ShelfState(*state)
        if known is None or known[:2] != wanted[:2]:
            return _new_texts(database, shelf, known, wanted, total)
        stale = database.all(database.sql["stale_texts"], (*_bounds(sid), RECORDS_AT_ONCE))
        if stale:
            return Portion(sid, known, known, list(_stale_texts(database, shelf, stale)))
        if known.filled < total:
            return _new_texts(database, shelf, known, known, total)
    return None


def pending_records(database: Database, catalog: Catalog, model: str) -> int:
    """Count the records whose vectors were never made; those that are stale do not count."""
    pending = 0
    for sid, total, *state in database.all(database.sql["vector_shelves"]):
        shelf = catalog.by_sid.get(sid)
        if shelf is not None and (fids := shelf.stream.with_vectors):
            is_current = state[:2] == [model, fids_key(fids.values())]
            pending += total - (state[2] if is_current else 0)
    return pending


def embed(portion: Portion, model: MeaningModel) -> list[PassageVector]:
    """Make the vectors of a portion: one for each passage of each text."""
    cut = [(text, passage) for text in portion.texts for passage in passages(text.text)]
    vectors = model.vectors([one.text[passage.start : passage.end] for one, passage in cut])
    return [
        PassageVector(one.rid, one.fid, one.time, passage.start, passage.end, vector.tobytes())
        for (one, passage), vector in zip(cut, vectors, strict=True)
    ]


def put(database: Database, portion: Portion, made: Iterable[PassageVector]) -> None:
    """Put the vectors of a portion in, inside the writer's transaction; texts that changed meanwhile stay stale."""
    if _state(database, portion.sid) != portion.before or _is_gone(database, portion.sid):
        # Another process was quicker, or the shelf is no longer there.
        return
    if portion.begins:
        delete_vectors(database, portion.sid)
    changed = {
        rid for rid, seq in {(one.rid, one.seq) for one in portion.texts} if seq != _seq(database, rid)
    }
    texts = [(one.rid, one.fid) for one in portion.texts]
    fresh = (one for one in made if one.rid not in changed)
    replace_rows(database, portion.sid, texts, fresh)
    database.run(database.sql["set_vector_shelf"], (portion.sid, *portion.after))
    database.many(database.sql["delete_stale_text"], [text for text in texts if text[0] not in changed])
    database.many(database.sql["mark_stale_text"], [text for text in texts if text[0] in changed])


def _bounds(sid: int) -> tuple[int, int]:
    return sid << RID_SHIFT, (sid + 1) << RID_SHIFT


def _state(database: Database, sid: int) -> ShelfState | None:
    row = database.one(database.sql["vector_shelf"], (sid,))
    return None if row is None else ShelfState(*row)


def _is_gone(database: Database, sid: int) -> bool:
    return sid not in current(database, Catalog()).by_sid


def _seq(database: Database, rid: int) -> int | None:
    row = database.one(database.sql["change_number_of_record"], (rid,))
    return None if row is None else row[0]


def _rows(database: Database, first: int, last: int) -> list[tuple[Any, ...]]:
    """Read live records; if a page is damaged one by one, without those on it."""
    try:
        return database.all(database.sql["records_to_embed"], (first, last))
    except database.damage:
        each = (_row(database, rid) for rid in range(first, last + 1))
        return [row for row in each if row is not None]


def _row(database: Database, rid: int) -> tuple[Any, ...] | None:
    try:
        # The first row alone: to see that there is no second one, the page of the next record would be read.
        return next(iter(database.each(database.sql["records_to_embed"], (rid, rid))), None)
    except database.damage:
        return None


def _new_texts(
    database: Database, shelf: Shelf, known: ShelfState | None, wanted: ShelfState, total: int
) -> Portion:
    first = shelf.sid << RID_SHIFT
    last = min(total, wanted.filled + RECORDS_AT_ONCE)
    texts: list[TextToEmbed] = []
    chars = 0
    for text in _texts(database, shelf, first | wanted.filled + 1, first | last, ()):
        if chars > _CHARS_AT_ONCE and text.rid != texts[-1].rid:
            last = texts[-1].rid & _N_MASK
            break
        texts.append(text)
        chars += len(text.text)
    return Portion(shelf.sid, known, wanted._replace(filled=last), texts)


def _stale_texts(database: Database, shelf: Shelf, stale: Iterable[tuple[Any, ...]]) -> Iterator[TextToEmbed]:
    fields: dict[int, set[int]] = {}
    for rid, fid in stale:
        fields.setdefault(rid, set()).add(fid)
    for rid, fids in fields.items():
        found = list(_texts(database, shelf, rid, rid, fids))
        yield from found
        # Of a record that is gone, or a field that has no vectors any more, the vectors are removed.
        left = fids - {one.fid for one in found}
        yield from (
            TextToEmbed(rid, fid, None, found[0].seq if found else _seq(database, rid), "") for fid in left
        )


def _texts(
    database: Database, shelf: Shelf, first: int, last: int, only: Collection[int]
) -> Iterator[TextToEmbed]:
    stream = shelf.stream
    for rid, seq, ts, long, body in _rows(database, first, last):
        values = values_of(database, stream, rid, long, body)
        if values is None:
            continue
        for name, fid in stream.with_vectors.items():
            if not only or fid in only:
                yield TextToEmbed(rid, fid, ts, seq, searched_text(values.get(name)))
