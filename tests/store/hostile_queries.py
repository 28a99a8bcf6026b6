"""Queries that are meant to break a search, or to make it take long."""

from __future__ import annotations

HOSTILE_QUERIES = (
    "canal " * 1000,
    "x" * 1_000_000,
    '"' * 400,
    '"a "b "c "d" e" f"',
    " ".join(f"{letter}*" for letter in "abcdefghijklmnop"),
    " OR ".join("abcdefghijklmnop"),
    "-a " * 15 + "canal",
    "\u202ecanal\u202c \u2067\u05e9\u05dc\u05d5\u05dd\u2069",
    "👩\u200d👩\u200d👧 ca\u200dnal",
    "\u0301" * 500,
    "%_\\'); DROP TABLE record; --",
    "9" * 500,
    "1.234,50 " * 16,
    "3 March 2026 " * 5,
    "\ud800 canal",
    "漢の" * 200,
)
