"""The word index as a whole: it is made again when the rules have changed by which text is cut into words.

A row of the index is taken out by giving the very words that were put in. With other rules these would be other
words, so an index that was made by other rules must be replaced before anything is written.
"""

from __future__ import annotations

from headgate.store import words
from headgate.store.sqlite.catalog import Catalog, Shelf, current
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.statements import SQL
from headgate.store.sqlite.write.derive import text_row
from headgate.store.sqlite.write.long_texts import stored_rows


def is_current(database: Database) -> bool:
    """Say whether the index was made by the rules of this version."""
    return database.value(SQL["words_version"]) == words.VERSION


def bring_up_to_date(database: Database) -> None:
    """Make the index again if it was made by other rules: all of it, or nothing if that is interrupted."""
    if is_current(database):
        return
    with database.writing():
        # Another process may have done it while this one waited for its turn.
        if not is_current(database):
            _make_again(database)


def _make_again(database: Database) -> None:
    database.run(SQL["empty_word_index"])
    catalog = current(database, Catalog())
    for shelf in (*catalog.by_sid.values(), *catalog.retired_shelves):
        if shelf.stream.slots:
            put_texts(database, shelf)
    database.run(SQL["set_words_version"], (words.VERSION,))


def put_texts(database: Database, shelf: Shelf) -> None:
    """Put the words of a shelf's live records into the index, a portion at a time."""
    stream = shelf.stream
    for rows in stored_rows(database, stream, shelf.sid):
        put = [text_row(stream, rid, ts, values) for rid, ts, values in rows]
        database.texts.put(tuple(stream.slots.values()), put)
        # A large shelf's texts must not all wait in memory.
        database.texts.flush(database.many)


def take_texts_out(database: Database, shelf: Shelf) -> None:
    """Take the words of a shelf's live records out of the index, a portion at a time."""
    stream = shelf.stream
    for rows in stored_rows(database, stream, shelf.sid):
        out = [text_row(stream, rid, ts, values) for rid, ts, values in rows]
        database.texts.take_out(tuple(stream.slots.values()), out)
        database.texts.flush(database.many)
