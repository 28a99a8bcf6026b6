"""Measure how well search finds: `python -m bench.relevance [--half tuning|held-out] [--each] [--english]`.

Constants of the ranking may be chosen by the tuning half of the questions only; the other half is for the report.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from bench.relevance.manuals import MANUALS, Section, fetch, sections
from bench.relevance.scoring import Question, Scores, grades_of, mean, score
from bench.relevance.searchers import OwnStore, Searched, Searcher, full_text, tantivy_index
from bench.relevance.stitched import NAME as STITCHED, stitched_questions
from bench.relevance.vectors import cached_model
from bench.store import CACHE
from headgate.model.query import SearchMode

_MANUALS = {one.name: one for one in MANUALS}
_HERE = Path(__file__).parent
_HALVES = {"tuning": _HERE / "tuning.json", "held-out": _HERE / "held_out.json"}


def main() -> None:
    """Ask every question of every searcher, and print the table."""
    asked = _arguments()
    anchors = msgspec.json.decode(_HALVES[asked.half].read_bytes(), type=dict[str, list[str]])
    texts = {
        name: sections(manual, fetch(manual, CACHE / "relevance"))
        for name, manual in _MANUALS.items()
        if name in anchors
    }
    english = {name: found for name, found in texts.items() if _MANUALS[name].language == "en"}
    measured: dict[str, dict[str, Scores | None]] = {}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        own = _own(stack, Path(directory) / "multilingual", texts, "multilingual")
        own_english = _own(stack, Path(directory) / "english", english, "english") if asked.english else None
        for name, lines in anchors.items():
            found = own.stitched_records if name == STITCHED else texts[name]
            questions = (
                stitched_questions(lines, own.stitched_records)
                if name == STITCHED
                else _questions(texts[name], lines)
            )
            is_english = name == STITCHED or name in english
            searchers = _searchers(own, own_english if is_english else None, name, found)
            measured[name] = _measure(questions, searchers)
    _print(measured, {name: len(found) for name, found in anchors.items()}, each=asked.each)


def _own(stack: ExitStack, directory: Path, texts: Mapping[str, Sequence[Section]], choice: str) -> OwnStore:
    directory.mkdir()
    own = OwnStore(directory, texts, cached_model(choice, CACHE / "vectors"))
    stack.callback(own.close)
    return own


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.relevance")
    parser.add_argument("--half", choices=sorted(_HALVES), default="tuning")
    parser.add_argument("--each", action="store_true", help="print every set, not only the languages' means")
    parser.add_argument(
        "--english", action="store_true", help="measure the English model too, on English sets"
    )
    return parser.parse_args()


def _questions(texts: Sequence[Section], anchors: Sequence[str]) -> list[Question]:
    found = {section.anchor: section for section in texts}
    questions: list[Question] = []
    for anchor in anchors:
        section = found.get(anchor)
        if section is None:
            continue
        near = [one.anchor for one in texts if one.parent == anchor or one.anchor == section.parent]
        questions.append(Question(section.title, grades_of(anchor, near)))
    return questions


def _searchers(
    own: OwnStore, own_english: OwnStore | None, name: str, texts: Sequence[Searched]
) -> dict[str, Searcher | None]:
    language = "en" if name == STITCHED else _MANUALS[name].language
    by_meaning = (SearchMode.SEMANTIC, SearchMode.HYBRID)
    return {
        "Headgate": own.searcher(name),
        **{str(mode): own.searcher(name, mode) for mode in by_meaning},
        **{
            f"{mode}, English": None if own_english is None else own_english.searcher(name, mode)
            for mode in by_meaning
        },
        "FTS5, porter, bm25": full_text(texts),
        "tantivy, stems, bm25": tantivy_index(texts, language),
        "every word as typed": full_text(texts, every_word=True),
    }


def _measure(
    questions: Sequence[Question], searchers: Mapping[str, Searcher | None]
) -> dict[str, Scores | None]:
    return {
        name: None
        if search is None
        else mean([score(question, search(question.text)) for question in questions])
        for name, search in searchers.items()
    }


def _print(
    measured: Mapping[str, Mapping[str, Scores | None]], counts: Mapping[str, int], *, each: bool
) -> None:
    names = list(next(iter(measured.values())))
    print(f"\n{'nDCG@10 / recall@25 / in the first three':28} " + " ".join(f"{name:>22}" for name in names))
    for manual, scores in measured.items() if each else ():
        print(f"{manual:24} {counts[manual]:3} " + " ".join(f"{_text(scores[name]):>22}" for name in names))
    total = {
        name: mean([found for one in measured.values() if (found := one[name])] or [Scores(0, 0, 0)])
        for name in names
    }
    print(
        f"{'all sets':24} {sum(counts.values()):3} " + " ".join(f"{_text(total[name]):>22}" for name in names)
    )


def _text(scores: Scores | None) -> str:
    return "-" if scores is None else f"{scores.ndcg_10:.3f} {scores.recall_25:.3f} {scores.first_three:.3f}"


if __name__ == "__main__":
    main()
