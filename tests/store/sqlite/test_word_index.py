from __future__ import annotations

from pathlib import Path

import pytest

from headgate.errors import StorageReadOnly, StorageUnusable
from headgate.home import open_home
from headgate.store import words
from headgate.store.protocol import Batch
from headgate.store.sqlite import readonly
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.maintenance.commands import check_store
from headgate.store.sqlite.paths import FILE
from headgate.store.sqlite.write import derive
from tests.store.declared import DESK, NOTES, PAGES, document, stream_of
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with words of three kinds: of a plain text, of a long one, of a stream declared no longer."""
    store = Driven("sqlite", tmp_path / "home")
    ledger = Ledger(store, connections=1)
    ledger.put({"id": 1, "text": "apple"}, stream=PAGES)
    ledger.put({"id": "a", "body": "pear " + "x" * 40_000})
    without = document("2")
    without["streams"].remove(stream_of(without, "pages"))
    store.declare(DESK, without)
    store.close()
    return store.directory


def _use_other_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derive, "cut", lambda text: " ".join(word[::-1] for word in text.split()))
    monkeypatch.setattr(words, "VERSION", words.VERSION + 1)


def _matches(store: Driven, word: str) -> int:
    return store.bare._reader.database.value("SELECT count(*) FROM fts WHERE fts MATCH ?", (word,))


def test_an_index_that_was_made_by_other_rules_is_made_again_when_the_store_is_opened(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    _use_other_rules(monkeypatch)
    store = Driven("sqlite", home)
    assert [_matches(store, word) for word in ("apple", "pear", "elppa", "raep")] == [0, 0, 1, 1]
    (connection,) = store.connections()
    line = b'{"data":{"id":"a","body":"plum"}}'
    assert store.ingest(Batch(connection.id, NOTES, [line], NOW)).accepted == 1
    assert [_matches(store, word) for word in ("raep", "mulp")] == [0, 1]
    store.close()


def test_a_store_with_words_of_another_version_is_not_examined(home: Path, monkeypatch: pytest.MonkeyPatch):
    _use_other_rules(monkeypatch)
    with pytest.raises(StorageUnusable, match="words"):
        check_store(open_home(home), lambda _done, _total: None)


def test_a_store_with_words_of_another_version_that_can_only_be_read_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(_path: Path) -> Database:
        raise StorageReadOnly

    monkeypatch.setattr(readonly, "open_writer", refuse)
    assert isinstance(readonly.start_writer(home / FILE), readonly.NoWriter)
    _use_other_rules(monkeypatch)
    with pytest.raises(StorageReadOnly, match="older version"):
        readonly.start_writer(home / FILE)
