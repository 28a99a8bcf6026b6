from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from headgate.errors import StorageReadOnly, StorageUnusable
from headgate.home import open_home
from headgate.model.ids import FieldName
from headgate.model.plan import SearchPlan, SearchReach, parse_terms
from headgate.model.rows import Batch, SearchPage
from headgate.store.changes import word_index, writer
from headgate.store.engines import sqlite as engine
from headgate.store.engines.commands import commands_of
from headgate.store.format import analyser
from headgate.store.sql import word_segments
from headgate.store.sql.word_segments import is_current
from headgate.store.sqlite import FILE
from headgate.store.sqlite.database import SqliteDatabase
from headgate.store.sqlite.migrate import all_migrations
from tests.store.declared import DESK, NOTES, PAGES, declared, document, stream_of
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with words of three kinds: of a plain text, of a long one, of a stream declared no longer."""
    store = Driven("sqlite", tmp_path / "home")
    ledger = Ledger(store, connections=1)
    ledger.put({"id": 1, "text": "apple"}, stream=PAGES)
    ledger.put({"id": "a", "body": "pear " + "x" * 40_000}, {"id": "b", "title": "plum"})
    without = document("2")
    without["streams"].remove(stream_of(without, "pages"))
    store.declare(DESK, without)
    store.close()
    return store.directory


def _use_other_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        word_segments, "index_tokens", lambda text: [word[::-1].encode() for word in text.split()]
    )
    monkeypatch.setattr(analyser, "VERSION", analyser.VERSION + 1)


def _holding(store: Driven, word: str) -> int:
    """Count the leaves of the index that hold a word."""
    leaves = store.bare._readers._loop_reader.database.all("SELECT words FROM word_leaf")
    return sum(b"\0%b\0" % word.encode() in words for (words,) in leaves)


def _is_found(store: Driven, q: str) -> bool:
    return bool(_search(store, q).hits)


def _search(store: Driven, q: str) -> SearchPage:
    fields = declared().streams[NOTES].query.lexical_fields
    return store.search(SearchPlan((SearchReach(_ledger(store).reach(), fields),), parse_terms(q), 5))


def _ledger(store: Driven) -> Ledger:
    (connection,) = store.connections()
    ledger = Ledger.__new__(Ledger)
    ledger.store, ledger.ids = store, (connection.id,)
    return ledger


def _is_whole(home: Path) -> bool:
    return not commands_of(open_home(home)).check(lambda _done, _total: None).damages


def test_an_index_that_was_made_by_other_rules_is_made_again_when_the_store_is_opened(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    _use_other_rules(monkeypatch)
    store = Driven("sqlite", home)
    assert [_holding(store, word) for word in ("apple", "pear", "elppa", "raep")] == [0, 0, 1, 1]
    (connection,) = store.connections()
    line = b'{"data":{"id":"a","body":"plum"}}'
    assert store.ingest(Batch(connection.id, NOTES, [line], NOW)).accepted == 1
    assert [_is_found(store, word) for word in ("raep", "mulp")] == [False, True]
    store.close()


def test_a_store_with_words_of_another_version_is_not_examined(home: Path, monkeypatch: pytest.MonkeyPatch):
    _use_other_rules(monkeypatch)
    with pytest.raises(StorageUnusable, match="words"):
        commands_of(open_home(home)).check(lambda _done, _total: None)


def test_a_store_with_words_of_another_version_that_can_only_be_read_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(_path: Path) -> SqliteDatabase:
        raise StorageReadOnly

    monkeypatch.setattr(engine, "open_writer", refuse)
    assert isinstance(engine.start_writer(home / FILE), engine.NoWriter)
    _use_other_rules(monkeypatch)
    with pytest.raises(StorageReadOnly, match="older version"):
        engine.start_writer(home / FILE)


def _make_older(home: Path) -> None:
    """Take a store back to the schema before the word index had segments."""
    database = apsw.Connection(str(home / FILE))
    full_text = next(step.sql for step in all_migrations() if step.number == 1)
    start = full_text.index("CREATE VIRTUAL TABLE fts")
    create = full_text[start : full_text.index("INSERT INTO fts", start)]
    for sql in (
        "DROP VIEW audit_chain",
        "DROP TRIGGER audit_stays",
        "CREATE TRIGGER audit_stays BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END",
        "DROP TABLE audit_pruned",
        "DROP TABLE word_segment",
        "DROP TABLE word_leaf",
        "DROP TABLE shelf_time",
        "DROP TABLE vector_block",
        "DROP TABLE vector_shelf",
        "DROP TABLE vector_stale",
        "DROP TABLE owner",
        "DROP TABLE owner_browser",
        "DROP TABLE oauth_entry",
        "DROP TABLE hiding_rule",
        "DROP TABLE owner_passkey",
        "DROP TABLE owner_challenge",
        "DROP TABLE connection_gone",
        "DROP TABLE word_gone",
        "DROP INDEX token_family",
        "ALTER TABLE blob DROP COLUMN noted_at",
        "CREATE TABLE column_block(sid INTEGER, fid INTEGER, b INTEGER, data BLOB, PRIMARY KEY(sid, fid, b))",
        "ALTER TABLE shelf ADD COLUMN col_seq INTEGER NOT NULL DEFAULT 0",
        *(f"ALTER TABLE t{stid} DROP COLUMN s{number}" for stid, number in _exact_columns(database)),
        "ALTER TABLE field DROP COLUMN scale",
        *(f"ALTER TABLE token DROP COLUMN {name}" for name in ("name", "scope", "family")),
        "DELETE FROM meta WHERE k='words_filled'",
        "UPDATE meta SET v=2 WHERE k='words'",
        create,
        "PRAGMA user_version=5",
    ):
        database.execute(sql)
    database.close()


def _exact_columns(database: apsw.Connection) -> list[tuple[Any, ...]]:
    return list(database.execute("SELECT stid, col FROM field WHERE scale IS NOT NULL"))


def test_a_store_with_the_older_index_gets_the_new_one_when_it_is_opened(home: Path):
    _make_older(home)
    store = Driven("sqlite", home)
    assert [_is_found(store, q) for q in ("pear", "plums", "elppa")] == [True, True, False]
    assert store.bare._readers._loop_reader.database.all("SELECT 1 FROM sqlite_schema WHERE name='fts'") == []
    store.close()
    assert _is_whole(home)


@pytest.fixture
def unfilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A home of the older version with two connections, none of its records in the new index yet."""
    store = Driven("sqlite", tmp_path / "home")
    ledger = Ledger(store, connections=2)
    ledger.put(
        {"id": "a", "title": "green canal", "body": "old letters", "at": "2026-01-01T00:00:00Z"},
        {"id": "b", "title": "canal", "body": "secret harbour", "at": "2026-05-01T00:00:00Z"},
        {"id": "c", "title": "東京都の canal"},
    )
    ledger.put({"id": "hidden", "title": "canal harbour"}, connection=1)
    store.close()
    _make_older(store.directory)
    monkeypatch.setattr(word_index, "OPENING_SECONDS", 0)
    monkeypatch.setattr(word_index, "_AT_ONCE", 1)
    monkeypatch.setattr(writer, "IDLE_SECONDS", 1000)
    ledger.store = Driven("sqlite", store.directory)
    yield ledger
    ledger.store.close()
    assert _is_whole(store.directory)


def _page(ledger: Ledger, q: str) -> SearchPage:
    reach = SearchReach(ledger.reach(connections=[0]), (FieldName("title"), FieldName("body")))
    return ledger.store.search(SearchPlan((reach,), parse_terms(q), 9))


def _keys(ledger: Ledger, q: str) -> list[str]:
    return [hit.record.id for hit in _page(ledger, q).hits if not hit.missing]


def test_until_the_index_is_filled_a_search_finds_what_is_in_it_and_says_so(unfilled: Ledger):
    found: list[tuple[int, bool]] = []
    filling = word_index.WordFilling()
    is_left = True
    while is_left:
        page = _page(unfilled, "canal")
        found.append((len(page.hits), page.is_index_building))
        is_left = unfilled.store.run(unfilled.store.bare._writer.run(filling.step, in_transaction=False))
    assert found[:4] == [(0, True), (1, True), (2, True), (3, True)]
    assert sorted(_keys(unfilled, "canal")) == ["a", "b", "c"]
    assert not _page(unfilled, "canal").is_index_building


def test_a_record_that_changed_since_is_found_by_what_it_says_now(unfilled: Ledger):
    unfilled.put({"id": "a", "title": "red barge", "body": "old letters", "at": "2026-01-01T00:00:00Z"})
    unfilled.remove("b")
    assert [_keys(unfilled, q) for q in ("green", "barge", "harbour")] == [[], ["a"], []]
    filling = word_index.WordFilling()
    while unfilled.store.run(unfilled.store.bare._writer.run(filling.step, in_transaction=False)):
        pass
    assert [_keys(unfilled, q) for q in ("green", "barge", "letters", "harbour")] == [[], ["a"], ["a"], []]


@pytest.mark.parametrize("portions", [0, 1, 2, 3])
def test_an_index_whose_making_was_stopped_is_finished_at_the_next_opening(
    home: Path, monkeypatch: pytest.MonkeyPatch, portions: int
):
    _make_older(home)
    monkeypatch.setattr(word_index, "_AT_ONCE", 1)
    made = word_index._go_on
    left = iter(range(portions))

    def stopped(database: SqliteDatabase) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        made(database)

    monkeypatch.setattr(word_index, "_go_on", stopped)
    with pytest.raises(KeyboardInterrupt):
        engine.start_writer(home / FILE)
    monkeypatch.setattr(word_index, "_go_on", made)
    store = Driven("sqlite", home)
    assert _is_found(store, "pear")
    store.close()
    assert _is_whole(home)


def test_words_near_a_mistyped_one_are_found_in_segments_of_before_there_were_filters(home: Path):
    database = apsw.Connection(str(home / FILE))
    database.execute("UPDATE word_segment SET filter=NULL")
    database.close()
    store = Driven("sqlite", home)
    assert _is_found(store, "xplum")
    store.close()
    assert _is_whole(home)


def test_a_filter_that_lacks_a_word_is_a_damage(home: Path):
    assert _is_whole(home)
    database = apsw.Connection(str(home / FILE))
    database.execute("UPDATE word_segment SET filter=zeroblob(length(filter))")
    database.close()
    assert not _is_whole(home)


def test_bounds_of_a_leaf_that_are_not_those_of_its_texts_are_a_damage(home: Path):
    assert _is_whole(home)
    database = apsw.Connection(str(home / FILE))
    database.execute("UPDATE word_segment SET bounds=zeroblob(length(bounds))")
    database.close()
    assert not _is_whole(home)


def _live_texts(store: Driven) -> list[int]:
    """Count the texts in the index that have not left, for each field."""
    sql = (
        "SELECT sum(text_count - coalesce(length(dead) / 2, 0))"
        " - (SELECT count(*) FROM word_gone g WHERE g.sid = s.sid AND g.fid = s.fid)"
        " FROM word_segment s GROUP BY sid, fid"
    )
    return [count for (count,) in store.bare._readers._loop_reader.database.all(sql)]


@pytest.mark.parametrize("portions", range(5))
def test_records_come_and_go_while_the_index_of_a_large_store_is_made(
    home: Path, monkeypatch: pytest.MonkeyPatch, portions: int
):
    _make_older(home)
    monkeypatch.setattr(word_index, "OPENING_SECONDS", 0)
    monkeypatch.setattr(word_index, "_AT_ONCE", 1)
    monkeypatch.setattr(writer, "IDLE_SECONDS", 1000)
    store = Driven("sqlite", home)
    filling = word_index.WordFilling()

    def fill() -> bool:
        return store.run(store.bare._writer.run(filling.step, in_transaction=False))

    is_left = [fill() for _ in range(portions)]
    assert _search(store, "fig").is_index_building == all(is_left)
    _ledger(store).put({"id": "a", "title": "quince"}, {"id": "c", "title": "fig"})
    _ledger(store).remove("b")
    assert [_is_found(store, q) for q in ("quince", "fig", "pear", "plum")] == [True, True, False, False]
    while fill():
        pass
    page = _search(store, "quince")
    assert (len(page.hits), page.is_index_building) == (1, False)
    assert [_is_found(store, q) for q in ("fig", "pear", "plum")] == [True, False, False]
    in_notes, in_pages = 2, 1
    assert set(_live_texts(store)) == {in_notes, in_pages}
    store.close()
    assert _is_whole(home)


def test_an_index_made_by_other_rules_answers_until_each_text_is_put_in_anew(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    _use_other_rules(monkeypatch)
    monkeypatch.setattr(word_index, "OPENING_SECONDS", 0)
    monkeypatch.setattr(word_index, "_AT_ONCE", 1)
    monkeypatch.setattr(writer, "IDLE_SECONDS", 1000)
    store = Driven("sqlite", home)
    filling = word_index.WordFilling()

    def found() -> tuple[list[str], bool]:
        words = [word for word in ("pear", "raep", "plum", "mulp") if _is_found(store, word)]
        return words, _search(store, "pear").is_index_building

    seen = [found()]
    while store.run(store.bare._writer.run(filling.step, in_transaction=False)):
        seen.append(found())
    seen.append(found())
    assert seen[0] == (["pear", "plum"], True)
    assert (["raep", "plum"], True) in seen
    assert seen[-1] == (["raep", "mulp"], False)
    assert all(len(words) == 2 for words, _ in seen)
    store.close()
    assert _is_whole(home)


def test_an_index_that_takes_long_is_made_in_idle_time(home: Path, monkeypatch: pytest.MonkeyPatch):
    _use_other_rules(monkeypatch)
    monkeypatch.setattr(word_index, "OPENING_SECONDS", 0)
    monkeypatch.setattr(word_index, "_AT_ONCE", 1)
    store = Driven("sqlite", home)
    assert not is_current(store.bare._readers._loop_reader.database)
    # What is left when a store is closed is done like in idle time.
    store.close()
    assert _is_whole(home)
    store = Driven("sqlite", home)
    assert _holding(store, "raep")
    store.close()


def test_a_store_whose_index_is_being_made_is_not_examined(home: Path):
    database = apsw.Connection(str(home / FILE))
    database.execute("UPDATE meta SET v=? WHERE k='words'", (-analyser.VERSION,))
    database.close()
    with pytest.raises(StorageUnusable, match="being made"):
        commands_of(open_home(home)).check(lambda _done, _total: None)


def test_a_batch_that_changes_one_text_reads_the_numbers_of_no_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = Driven("sqlite", tmp_path)
    ledger = Ledger(store, connections=1)
    ledger.put(*({"id": f"k{n}", "title": f"plum {n}"} for n in range(50)))
    read: list[str] = []
    read_all = SqliteDatabase.all

    def note(database: SqliteDatabase, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        read.append(sql)
        return read_all(database, sql, values)

    monkeypatch.setattr(SqliteDatabase, "all", note)
    ledger.put({"id": "k7", "title": "quince"})
    assert [sql for sql in read if "numbers" in sql and "word_segment" in sql] == []
    assert [_is_found(store, q) for q in ("quince", '"plum 7"', '"plum 8"')] == [True, False, True]
    store.close()
    assert _is_whole(tmp_path)
