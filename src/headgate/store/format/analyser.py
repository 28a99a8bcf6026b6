"""What the word index holds of a text, the same for every engine: its words, and beside them dates and numbers.

Dates and numbers are indexed as written and, beside that, in one normal form (`normal_forms`).
"""

from __future__ import annotations

from headgate.store.format.normal_forms import normal_forms
from headgate.words import index_words

#: Raise it when the words of a text change, or which fields are searched: a store notes it, and makes its index again when it is opened.
VERSION = 6


def index_tokens(text: str) -> list[bytes]:
    """Return everything that the index holds of a text: its words in order, then dates and numbers in normal form."""
    words = index_words(text)
    words.extend(form.encode() for _, _, form in normal_forms(text))
    return words
