"""The invented year of ``bench.agents`` as texts, and questions about it.

A line of a file of questions is ``right | also right, near, ...: question``. A question by words uses those of the text;
one by meaning says it in others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.agents.story import CHATS, EVENTS
from bench.agents.year import write_year
from bench.relevance.manuals import Section
from bench.relevance.scoring import Question, grades_of

NAMES = ("year-words", "year-meaning")


def everyday() -> list[Section]:
    """Return mails, events, messages, notes and payments, each with its own title."""
    with tempfile.TemporaryDirectory() as directory:
        return list({section.anchor: section for section in _sections(Path(directory))}.values())


def everyday_questions(lines: Sequence[str]) -> list[Question]:
    """Read a file's lines."""
    questions: list[Question] = []
    for line in lines:
        about, _, text = line.partition(": ")
        right, *near = about.split(", ")
        questions.append(Question(text, grades_of(right.split(" | "), near)))
    return questions


def _sections(place: Path) -> Iterator[Section]:
    year = write_year(place)
    for mail in year.mails:
        yield _section(mail.name, mail.subject, f"{mail.sender}\n{mail.text}")
    for start, title, where, detail in EVENTS:
        yield _section(f"event {start}", title, f"{where}\n{detail}")
    # Those of the story come last, in place of small talk of the same minute.
    for group, at, author, text in (*year.chats, *CHATS):
        yield _section(f"chat {at}", group, f"{author}: {text}")
    for number, (day, counterparty, description, category, _) in enumerate(year.payments):
        yield _section(f"payment {number}", counterparty, f"{day} {description}\n{category}")
    for path in sorted((place / "notes").glob("*.md")):
        yield _section(f"note {path.stem}", path.stem, path.read_text().partition("\n\n")[2])


def _section(anchor: str, heading: str, text: str) -> Section:
    return Section(anchor, "", None, text, heading)
