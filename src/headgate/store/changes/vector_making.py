"""Make vectors in portions: read some texts, embed them outside of any transaction, and put the vectors in.

A shelf notes up to which record its vectors are made, the newest first, and the gaps that this leaves below; a text that
changes after that is noted as stale, in the transaction that changes it. So the texts that wait need no list, and a process
that is stopped goes on where it was.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from headgate.store.changes.stored_rows import values_of
from headgate.store.format.records import N_MASK, RID_SHIFT, searched_text, shelf_rows
from headgate.store.format.streams import Shelf
from headgate.store.format.vector_gaps import MadeVectors, NumberRange
from headgate.store.models.model import MeaningModel, ModelIdentity, passages
from headgate.store.sql.catalog import Catalog, current
from headgate.store.sql.database import Database
from headgate.store.sql.vector_blocks import PassageVector, delete_vectors, fids_key, replace_rows
from headgate.tasks import Supervisor
from headgate.telemetry import get_logger

#: At most so many records and characters make a portion: a second of work, about, with the default model.
RECORDS_AT_ONCE = 64
_CHARS_AT_ONCE = 60_000


class ShelfState(NamedTuple):
    """By which model, and of which fields, the vectors of a shelf are made, and of which records."""

    model: str
    fids: str
    filled: int = 0
    gaps: str = ""

    @property
    def made(self) -> MadeVectors:
        """The records whose vectors are made."""
        return MadeVectors.read(self.filled, self.gaps)


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


class _Waiting(NamedTuple):
    """A shelf with texts whose vectors are to be made, and how many of its newest records in a row wait."""

    newest_count: int
    sid: int
    shelf: Shelf
    before: ShelfState | None
    wanted: ShelfState
    total: int


def model_key(identity: ModelIdentity) -> str:
    """Name a model as the store notes it."""
    return f"{identity.name} {identity.digest} {identity.dimensions}"


def next_portion(database: Database, catalog: Catalog, model: str) -> Portion | None:
    """Find texts whose vectors are to be made; None if all are made.

    Those that changed come first, then the shelf of whose newest records the fewest wait: a message of today does not
    wait for the mail of years.
    """
    waiting: list[_Waiting] = []
    for sid, total, *state in database.all(database.sql["vector_shelves"]):
        shelf = catalog.by_sid.get(sid)
        if shelf is None or not (fids := shelf.stream.with_vectors):
            continue
        wanted = ShelfState(model, fids_key(fids.values()))
        known = None if state[0] is None else ShelfState(*state)
        if known is None or known[:2] != wanted[:2]:
            waiting.append(_Waiting(total, sid, shelf, known, wanted, total))
            continue
        stale = database.all(database.sql["stale_texts"], (*shelf_rows(sid), RECORDS_AT_ONCE))
        if stale:
            return Portion(sid, known, known, list(_stale_texts(database, shelf, stale)))
        if missing := known.made.missing(total):
            waiting.append(_Waiting(missing[-1].size, sid, shelf, known, known, total))
    if not waiting:
        return None
    _, _, shelf, known, wanted, total = min(waiting, key=lambda wait: wait[:2])
    return _new_texts(database, shelf, known, wanted, total)


def pending_records(database: Database, catalog: Catalog, model: str) -> int:
    """Count the records whose vectors were never made; those that are stale do not count."""
    pending = 0
    for sid, total, *state in database.all(database.sql["vector_shelves"]):
        shelf = catalog.by_sid.get(sid)
        if shelf is not None and (fids := shelf.stream.with_vectors):
            is_current = state[:2] == [model, fids_key(fids.values())]
            made = MadeVectors.read(*state[2:]) if is_current else MadeVectors()
            pending += sum(missing.size for missing in made.missing(total))
    return pending


def embed(portion: Portion, model: MeaningModel) -> list[PassageVector]:
    """Make the vectors of a portion: one for each passage of each text."""
    cut = [(text, passage) for text in portion.texts for passage in passages(text.text)]
    texts = [source.text[passage.start : passage.end] for source, passage in cut]
    # Subjects of one conversation, and payments, are often the same.
    distinct = list(dict.fromkeys(texts))
    vectors = dict(zip(distinct, model.vectors(distinct), strict=True))
    return [
        PassageVector(
            source.rid, source.fid, source.time, passage.start, passage.end, vectors[text].tobytes()
        )
        for (source, passage), text in zip(cut, texts, strict=True)
    ]


def put(database: Database, portion: Portion, vectors: Iterable[PassageVector]) -> None:
    """Put the vectors of a portion in, inside the writer's transaction; texts that changed meanwhile stay stale."""
    if _state(database, portion.sid) != portion.before or _is_gone(database, portion.sid):
        # Another process was quicker, or the shelf is no longer there.
        return
    if portion.begins:
        delete_vectors(database, portion.sid)
    changed = {
        rid
        for rid, seq in {(source.rid, source.seq) for source in portion.texts}
        if seq != _seq(database, rid)
    }
    texts = [(source.rid, source.fid) for source in portion.texts]
    fresh = (source for source in vectors if source.rid not in changed)
    replace_rows(database, portion.sid, texts, fresh)
    database.run(database.sql["set_vector_shelf"], (portion.sid, *portion.after))
    database.many(database.sql["delete_stale_text"], [text for text in texts if text[0] not in changed])
    database.many(database.sql["mark_stale_text"], [text for text in texts if text[0] in changed])


def _state(database: Database, sid: int) -> ShelfState | None:
    row = database.one(database.sql["vector_shelf"], (sid,))
    return None if row is None else ShelfState(*row)


def _is_gone(database: Database, sid: int) -> bool:
    return sid not in current(database).by_sid


def _seq(database: Database, rid: int) -> int | None:
    row = database.one(database.sql["change_number_of_record"], (rid,))
    return None if row is None else row[0]


def _rows(database: Database, first: int, last: int) -> list[tuple[Any, ...]]:
    """Read live records, the newest first; if a page is damaged one by one, without those on it."""
    try:
        return database.all(database.sql["records_to_embed"], (first, last))
    except database.damage:
        each = (_row(database, rid) for rid in range(last, first - 1, -1))
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
    newest = wanted.made.newest(total, RECORDS_AT_ONCE)
    if newest is None:
        return Portion(shelf.sid, known, wanted, [])
    base, (first, last) = shelf.sid << RID_SHIFT, newest
    texts: list[TextToEmbed] = []
    chars = 0
    for text in _texts(database, shelf, base | first, base | last, ()):
        if chars > _CHARS_AT_ONCE and text.rid != texts[-1].rid:
            first = texts[-1].rid & N_MASK
            break
        texts.append(text)
        chars += len(text.text)
    made = wanted.made.with_made(NumberRange(first, last))
    return Portion(shelf.sid, known, ShelfState(*wanted[:2], *made.noted()), texts)


def _stale_texts(database: Database, shelf: Shelf, stale: Iterable[tuple[Any, ...]]) -> Iterator[TextToEmbed]:
    fields: dict[int, set[int]] = {}
    for rid, fid in stale:
        fields.setdefault(rid, set()).add(fid)
    for rid, fids in fields.items():
        texts = list(_texts(database, shelf, rid, rid, fids))
        yield from texts
        # Of a record that is gone, or a field that has no vectors any more, the vectors are removed.
        left = fids - {text.fid for text in texts}
        yield from (
            TextToEmbed(rid, fid, None, texts[0].seq if texts else _seq(database, rid), "") for fid in left
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


#: How often to look for texts that another process has stored.
_LOOK_SECONDS = 5.0
#: By which name failures are shown.
LOOP = "vectors"
#: While much is to be made, the log says now and then how much is left.
_PORTIONS_PER_LINE = 32


class VectorStore(Protocol):
    """What the thread needs of an engine."""

    def scan(self, work: Callable[[Database, Catalog], Any]) -> Any:
        """Read on a connection for this alone."""
        ...

    async def change(self, work: Callable[[Database], None]) -> None:
        """Do some work in one write transaction."""

    def has_turn(self) -> bool:
        """Return whether this process makes the vectors: of several, one does."""
        ...

    def end_turn(self) -> None:
        """Let another process make them."""


class VectorThread:
    """Makes vectors until it is closed."""

    def __init__(self, store: VectorStore, model: MeaningModel, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._store = store
        self._model = model
        self._changed = threading.Condition()
        #: How often texts were reported, and how many of these reports have been dealt with.
        self._reported = 1
        self._seen = 0
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="headgate-vectors", daemon=True)
        self._thread.start()

    def report(self) -> None:
        """Let the thread look for new texts now."""
        with self._changed:
            self._reported += 1
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until everything that was reported has its vectors; returns whether it has."""
        with self._changed:
            reported = self._reported
            return self._changed.wait_for(lambda: self._seen >= reported, seconds)

    def close(self) -> None:
        """End the thread after the portion it is at."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        try:
            while not self._is_closing:
                self._round()
        finally:
            self._store.end_turn()

    def _round(self) -> None:
        """Make everything that is to be made, then wait for more; after a failure, whatever it is, longer each time."""
        reported = self._reported
        try:
            if self._store.has_turn():
                self._make_all()
                self._seen = reported
        except Exception as error:  # noqa: BLE001 - a thread that ends in silence is worse than any failure
            self._wait(lambda: self._is_closing, self._supervisor.failed(LOOP, error))
        else:
            self._supervisor.worked(LOOP)
            self._wait(lambda: self._is_closing or self._reported > reported, _LOOK_SECONDS)

    def _wait(self, is_over: Callable[[], bool], seconds: float) -> None:
        with self._changed:
            self._changed.notify_all()
            self._changed.wait_for(is_over, seconds)

    def _make_all(self) -> None:
        count = 0
        for number in itertools.count():
            portion = None if self._is_closing else self._next(logs=number % _PORTIONS_PER_LINE == 1)
            if portion is None:
                break
            vectors = embed(portion, self._model)
            asyncio.run(self._store.change(partial(put, portion=portion, vectors=vectors)))
            count += len(portion.texts)
        if count:
            get_logger().info("vectors_made", count=count)

    def _next(self, *, logs: bool) -> Portion | None:
        key = model_key(self._model.embedder.identity)

        def work(database: Database, catalog: Catalog) -> Portion | None:
            if logs:
                count = pending_records(database, catalog, key)
                get_logger().info("vectors_pending", count=count)
            return next_portion(database, catalog, key)

        return self._store.scan(work)
