"""Measure how well search finds: `python -m bench.relevance [--half tuning|held-out|unseen] [--each] [--english]`.

Constants of the ranking may be chosen by the tuning half of the questions only; the other half is for the report. The
questions `unseen` ask for texts of other kinds, which have a title; no constant may be chosen by them either.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from bench.database import running
from bench.relevance.docstrings import NAME as DOCSTRINGS, docstrings
from bench.relevance.everyday import NAMES as EVERYDAY, everyday, everyday_questions
from bench.relevance.man_pages import MAN_PAGES, man_pages
from bench.relevance.manuals import MANUALS, Section, fetch_package, sections
from bench.relevance.report import OWN, Measured, print_differences, print_means, print_misses
from bench.relevance.scoring import Question, grades_of, score
from bench.relevance.searchers import OwnStore, Searched, Searcher, full_text, postgres_index, tantivy_index
from bench.relevance.stitched import NAME as STITCHED, stitched_questions
from bench.relevance.vectors import cached_model
from bench.store import CACHE
from headgate.model.query import SearchMode

_MANUALS = {one.name: one for one in MANUALS}
_LANGUAGES = {one.name: one.language for one in MANUALS} | {
    name: language for name, (language, _) in MAN_PAGES.items()
}
_HERE = Path(__file__).parent
_HALVES = {
    "tuning": _HERE / "tuning.json",
    "held-out": _HERE / "held_out.json",
    "unseen": _HERE / "unseen.json",
}
#: Makes a searcher of texts in a language, with the address of a PostgreSQL server; None: it is not there.
_Peer = Callable[[Sequence[Searched], str, str | None], Searcher | None]
_PEERS: Mapping[str, _Peer] = {
    "FTS5, porter, bm25": lambda texts, _language, _url: full_text(texts),
    "tantivy, stems, bm25": lambda texts, language, _url: tantivy_index(texts, language),
    "PostgreSQL, ts_rank": postgres_index,
}


def main() -> None:
    """Ask every question of every searcher, and print the table."""
    asked = _arguments()
    lines = msgspec.json.decode(_HALVES[asked.half].read_bytes(), type=dict[str, list[str]])
    texts = {name: _texts(name) for name in lines if name != STITCHED}
    english = {name: found for name, found in texts.items() if _LANGUAGES.get(name, "en") == "en"}
    measured: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        own = _own(stack, Path(directory), texts, "multilingual", with_stitched=STITCHED in lines)
        own_english = (
            _own(stack, Path(directory), english, "english", with_stitched=STITCHED in lines)
            if asked.english
            else None
        )
        url = stack.enter_context(running()).url if asked.postgres else None
        for name, found in lines.items():
            searched = own.stitched_records if name == STITCHED else texts[name]
            if name == STITCHED:
                questions = stitched_questions(found, own.stitched_records)
            elif name in EVERYDAY:
                questions = everyday_questions(found)
            else:
                questions = _questions(texts[name], found)
            is_english = name == STITCHED or name in english
            searchers = _searchers(own, own_english if is_english else None, name, searched, url)
            measured[name] = _measure(questions, searchers)
    print_means(measured, each=asked.each)
    for own_name in (OWN, str(SearchMode.HYBRID)):
        print_differences(measured, list(_PEERS), own_name)
    print_misses(measured, list(_PEERS), asked.misses)


def _texts(name: str) -> list[Section]:
    if name == DOCSTRINGS:
        return docstrings()
    if name in EVERYDAY:
        return everyday()
    cache = CACHE / "relevance"
    if name in MAN_PAGES:
        return man_pages(name, cache)
    return sections(_MANUALS[name], fetch_package(_MANUALS[name].package, cache))


def _own(
    stack: ExitStack,
    directory: Path,
    texts: Mapping[str, Sequence[Section]],
    choice: str,
    *,
    with_stitched: bool,
) -> OwnStore:
    place = directory / choice
    place.mkdir()
    own = OwnStore(place, texts, cached_model(choice, CACHE / "vectors"), with_stitched=with_stitched)
    stack.callback(own.close)
    return own


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.relevance")
    parser.add_argument("--half", choices=sorted(_HALVES), default="tuning")
    parser.add_argument("--each", action="store_true", help="print every set, not only the mean of all")
    parser.add_argument(
        "--english", action="store_true", help="measure the English model too, on English sets"
    )
    parser.add_argument(
        "--postgres", action="store_true", help="measure PostgreSQL too, which is started for it"
    )
    parser.add_argument(
        "--misses", type=int, default=0, help="print so many questions that another engine answers better"
    )
    return parser.parse_args()


def _questions(texts: Sequence[Section], lines: Sequence[str]) -> list[Question]:
    """Read lines of ``anchor | anchor of another text that says it``; the title of the first is the question."""
    found = {section.anchor: section for section in texts}
    questions: list[Question] = []
    for line in lines:
        anchor, *also_right = line.split(" | ")
        section = found.get(anchor)
        if section is None:
            continue
        near = [one.anchor for one in texts if one.parent == anchor or one.anchor == section.parent]
        questions.append(Question(section.title, grades_of((anchor, *also_right), near)))
    return questions


def _searchers(
    own: OwnStore, own_english: OwnStore | None, name: str, texts: Sequence[Searched], url: str | None
) -> dict[str, Searcher | None]:
    language = _LANGUAGES.get(name, "en")
    by_meaning = (SearchMode.SEMANTIC, SearchMode.HYBRID)
    return {
        OWN: own.searcher(name),
        **{str(mode): own.searcher(name, mode) for mode in by_meaning},
        **{
            f"{mode}, English": None if own_english is None else own_english.searcher(name, mode)
            for mode in by_meaning
        },
        **{name: peer(texts, language, url) for name, peer in _PEERS.items()},
        "every word as typed": full_text(texts, every_word=True),
    }


def _measure(questions: Sequence[Question], searchers: Mapping[str, Searcher | None]) -> Measured:
    return Measured(
        questions,
        {
            name: None
            if search is None
            else [score(question, search(question.text)) for question in questions]
            for name, search in searchers.items()
        },
    )


if __name__ == "__main__":
    main()
