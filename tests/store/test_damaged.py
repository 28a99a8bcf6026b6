"""One damaged record costs one record, in work over all of them too: declaring, indexing, embedding, taking in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.model.ids import FieldName
from headgate.model.plan import SearchPlan, SearchReach, parse_terms
from headgate.model.query import ExactFilter, SearchMode
from headgate.store.format import analyser
from tests.store.damages import FILLER, change_rows, damage_page
from tests.store.declared import DESK, document, stream_of
from tests.store.engines import ENGINES, Driven
from tests.store.ledger import Ledger, body
from tests.store.semantic.meaning import MeaningHome, find, keys, made, meaning_ledger, opened, words_model

#: What a bad disk, or a hand that edits the tables, makes of a body.
_DAMAGES = {
    "cut off": "body=x'7b22'",
    "no record": "body=x'3132'",
    "no text": "body=x'ff00'",
    "long text that no field has": "body=x'7b7d', long=x'81a16e9201c400'",
    "long texts that cannot be read": "long=x'c1'",
}


def _damaged(engine: str, directory: Path, damage: str) -> None:
    if engine == "postgres":
        damage = damage.replace("x'", "'\\x")
    change_rows(engine, directory, f"UPDATE record SET {damage} WHERE record_id='b'")


def _notes(**more: Any) -> list[dict[str, Any]]:
    return [{"id": key, "title": "harbour", "code": f"canal {key}", **more} for key in "abc"]


def _found(ledger: Ledger, q: str, *fields: str) -> list[str]:
    names = tuple(map(FieldName, fields))
    page = ledger.store.search(SearchPlan((SearchReach(ledger.reach(), names),), parse_terms(q), 5))
    return sorted(hit.record.id for hit in page.hits)


def _newer() -> dict[str, Any]:
    """A version of the declaration that searches and compares what the one before does not."""
    newer = document("2")
    notes = stream_of(newer, "notes")
    notes["query"]["search"]["lexical_fields"].append("code")
    notes["query"]["aggregations"]["group_by"].append("code")
    return newer


@pytest.mark.parametrize("damage", _DAMAGES.values(), ids=_DAMAGES)
def test_a_new_version_is_declared_around_a_damaged_record(ledger: Ledger, damage: str):
    ledger.put(*_notes())
    _damaged(ledger.store.engine, ledger.store.directory, damage)
    ledger.store.declare(DESK, _newer())
    assert _found(ledger, "canal", "code") == ["a", "c"]
    only = ExactFilter(FieldName("code"), "canal c")
    assert ledger.keys(filters=(only,)) == ["c"]


@pytest.mark.parametrize("damage", _DAMAGES.values(), ids=_DAMAGES)
def test_words_are_indexed_anew_around_a_damaged_record(
    engine: str, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
):
    ledger = Ledger(Driven(engine, tmp_path / "home"), connections=1)
    ledger.put(*_notes())
    _damaged(engine, ledger.store.directory, damage)
    monkeypatch.setattr(analyser, "VERSION", analyser.VERSION + 1)
    ledger.store = ledger.store.opened_again()
    assert _found(ledger, "harbour", "title") == ["a", "c"]
    ledger.store.close()


@pytest.mark.parametrize("damage", [*_DAMAGES.values(), "digest=x'00'", "changed=x'c1'"])
def test_what_comes_in_again_mends_a_damaged_record(ledger: Ledger, damage: str):
    ledger.put(*_notes())
    _damaged(ledger.store.engine, ledger.store.directory, damage)
    ledger.put(*_notes(size=7))
    assert [body(record)["size"] for record in ledger.page().records] == [7, 7, 7]
    assert _found(ledger, "harbour", "title") == ["a", "b", "c"]


@pytest.mark.parametrize("damage", [*_DAMAGES.values(), "digest=x'00'"])
def test_what_comes_in_unchanged_mends_a_damaged_record(ledger: Ledger, damage: str):
    ledger.put(*_notes())
    _damaged(ledger.store.engine, ledger.store.directory, damage)
    ledger.put(*_notes())
    page = ledger.page()
    assert (sorted(record.id for record in page.records), page.damaged) == (["a", "b", "c"], ())


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("damage", _DAMAGES.values(), ids=_DAMAGES)
def test_vectors_are_made_around_a_damaged_record(tmp_path: Path, engine: str, damage: str):
    home = MeaningHome(tmp_path / "home", engine)
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put(*_notes())
        made(ledger)
        _damaged(engine, home.directory, damage)
    store = opened(home, words_model("others"))
    ledger.store = store
    made(ledger)
    assert sorted(keys(find(ledger, "harbour"))) == ["a", "c"]
    store.close()


# Pages of the file


def _on_damaged_page(tmp_path: Path) -> Path:
    """Make a home one of whose records, 'b', lies on a page that cannot be read."""
    home = tmp_path / "home"
    with meaning_ledger(MeaningHome(home), words_model(), connections=1) as ledger:
        ledger.put(*_notes(extra={"filler": FILLER})[:1])
        ledger.put({**_notes()[1], "extra": {"mark": "<b>", "filler": FILLER}})
        ledger.put(*_notes(extra={"filler": FILLER})[2:])
        made(ledger)
    damage_page(home, b"<b>")
    return home


def _opened(home: Path, model: str = "words") -> Ledger:
    store = opened(MeaningHome(home), words_model(model))
    ledger = Ledger.__new__(Ledger)
    ledger.store, ledger.ids = store, tuple(one.id for one in store.connections())
    return ledger


def test_a_store_whose_words_cannot_be_indexed_anew_for_a_damaged_page_opens_and_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home = _on_damaged_page(tmp_path)
    monkeypatch.setattr(analyser, "VERSION", analyser.VERSION + 1)
    ledger = _opened(home)
    page = ledger.page()
    assert (sorted(record.id for record in page.records), page.damaged) == (["a", "c"], ("b",))
    ledger.store.close()


@pytest.mark.parametrize("mode", [SearchMode.SEMANTIC, SearchMode.HYBRID])
def test_a_search_by_meaning_goes_around_a_damaged_page_and_names_the_record(
    tmp_path: Path, mode: SearchMode
):
    ledger = _opened(_on_damaged_page(tmp_path))
    page = find(ledger, "harbour", mode=mode)
    assert (sorted(keys(page)), page.damaged) == (["a", "c"], ("b",))
    ledger.store.close()


def test_vectors_are_made_around_a_damaged_page(tmp_path: Path):
    ledger = _opened(_on_damaged_page(tmp_path), "others")
    made(ledger)
    assert sorted(keys(find(ledger, "harbour"))) == ["a", "c"]
    ledger.store.close()


def test_a_long_text_that_cannot_be_read_costs_its_record_and_not_the_search(ledger: Ledger):
    ledger.put(*({"id": key, "body": "x " * 20_000 + "harbour"} for key in "ab"))
    change_rows(
        ledger.store.engine,
        ledger.store.directory,
        "UPDATE chunk SET text='lost' WHERE n > 0 AND rid % 2 = 0",
    )
    page = ledger.store.search(
        SearchPlan(
            (SearchReach(ledger.reach(), (FieldName("body"),)),), parse_terms("harbour"), 5, preview_chars=10
        )
    )
    assert (len(page.hits), len(page.damaged)) == (1, 1)
