"""Words: how text is cut for the index, and how a query is cut to match it. The same for every engine.

Scripts that write no spaces between words (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) are indexed
as overlapping pairs: a run ABCD becomes "AB BC CD D". A query of two or more such characters is then the
phrase of its pairs, and a single one is the beginning of a pair. Everything else is words as they stand; the
index folds case and accents, and only "ß", which it does not know to be "ss", is written so here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from headgate.model.plan import Term

#: Raise it when `cut` changes: a store notes it, and makes its index again when it is opened with another one.
VERSION = 2
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3031-\u3035\u3040-\u30ff"
    "\u3105-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U00020000-\U0003ffff"
)
RUN = re.compile(f"[{_UNSPACED}]+")


def cut(text: str) -> str:
    """Prepare a text for the index."""
    if text.isascii():
        return text
    text = _without_sharp_s(text)
    if not RUN.search(text):
        return text
    return RUN.sub(lambda run: f" {' '.join(_pairs(run.group()))} ", unicodedata.normalize("NFKC", text))


def match_expression(term: Term) -> str:
    """Write a term in the index's query language; whatever is in it stays a word."""
    text = " ".join(term.words).replace("\0", "").replace('"', " ")
    is_prefix = term.is_prefix
    text = _without_sharp_s(text)
    if not text.isascii() and RUN.search(text):
        text, is_prefix = _cut_query(unicodedata.normalize("NFKC", text), is_prefix=is_prefix)
    return f'"{text}" *' if is_prefix else f'"{text}"'


def _without_sharp_s(text: str) -> str:
    return text.replace("ß", "ss").replace("ẞ", "ss")


def _pairs(run: str) -> Iterator[str]:
    return (run[at : at + 2] for at in range(len(run)))


def _cut_query(text: str, *, is_prefix: bool) -> tuple[str, bool]:
    """Cut a query as the index was cut; its last character has no partner that must follow."""
    parts: list[str] = []
    at = 0
    for run in RUN.finditer(text):
        parts.append(text[at : run.start()])
        at = run.end()
        is_last = not text[at:].strip()
        if len(run.group()) == 1 and is_last:
            parts.append(run.group())
            is_prefix = True
        else:
            pairs = list(_pairs(run.group()))
            parts.extend(pairs[:-1] if is_last else pairs)
    parts.append(text[at:])
    return " ".join(part.strip() for part in parts if part.strip()), is_prefix
