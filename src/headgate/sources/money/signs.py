"""Which way the money of a table went, where its amounts do not say so: by a column of words, and by the balance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from headgate.sources.formats.written import amount_of
from headgate.sources.money.columns import Columns, Role

#: What banks write of money that went out.
_OUTGOING = "s soll d dr debit dbit db debe cargo - af debe(-) débit debet out uit uscita dare výdaj расход outflow kiadás"
_INCOMING = (
    "h haben c cr credit crdt haber abono + bij crédit kredit in entrata avere příjem приход inflow bevétel k"
)
OUTGOING = frozenset(_OUTGOING.split(" "))
_WORDS = OUTGOING | frozenset(_INCOMING.split(" "))
_LETTERS = 2
#: Steps of the balance that have to fit before it is believed.
_FITTING = 0.8
_FEWEST_STEPS = 2
_CARDS = ("cardmember", "card member", "karteninhaber", "kartenlimit", "titulaire de la carte")


@dataclass(frozen=True, slots=True)
class Signs:
    """What says the sign of a line, beside the one of its amount."""

    #: The column whose words say it of each line.
    column: int | None = None
    #: Whether positive amounts are money that went out: the balance falls with them.
    is_turned: bool = False
    #: Whether nothing says that positive amounts are money that came in.
    is_open: bool = False
    #: Whether it is the table of a card, which may write what was bought as positive and what was paid back as negative.
    is_card: bool = False

    def signed(self, row: Sequence[str], amount: Decimal) -> Decimal:
        word = word_at(row, self.column) if self.column is not None else ""
        signed = -abs(amount) if word in OUTGOING else amount
        return -signed if self.is_turned else signed


def is_sign_word(text: str) -> bool:
    return text.strip(".").casefold() in _WORDS


def word_at(row: Sequence[str], at: int) -> str:
    return row[at].strip().strip(".").casefold() if at < len(row) else ""


def signs_of(
    columns: Columns, rows: Sequence[Sequence[str]], mark: str, *, is_newest_first: bool | None
) -> Signs:
    """Find out what says the signs; `is_newest_first` is the order of the rows, as far as their days tell it."""
    if Role.AMOUNT not in columns.roles:
        return Signs()
    read = [(row, amount_of(columns.first(row, Role.AMOUNT), mark)) for row in rows]
    lines = [(row, amount) for row, amount in read if amount is not None]
    words = Signs(column=_column(columns, [row for row, _ in lines]))
    amounts = [words.signed(row, amount) for row, amount in lines]
    balances = [amount_of(columns.first(row, Role.BALANCE), mark) for row, _ in lines]
    steps = [(amount, after) for amount, after in zip(amounts, balances, strict=True) if after is not None]
    by_balance = is_turned(steps, is_newest_first=is_newest_first)
    negative = sum(amount < 0 for amount in amounts)
    is_card = any(name.casefold().startswith(_CARDS) for name in columns.names)
    is_unsigned = not negative or (is_card and negative * 2 < len(amounts))
    has_other = words.column is not None or by_balance is not None or Role.DEBIT in columns.roles
    is_open = bool(amounts) and is_unsigned and not has_other
    return Signs(words.column, bool(by_balance), is_open, is_card)


def _column(columns: Columns, rows: Sequence[Sequence[str]]) -> int | None:
    """Find the column with nothing but words for the two ways; letters alone are trusted if both occur."""
    for at, role in enumerate(columns.roles):
        words = {word for row in rows if (word := word_at(row, at))}
        if words and words <= _WORDS:
            has_both = not words.isdisjoint(OUTGOING) and not words <= OUTGOING
            if role is Role.SIGN or has_both or all(len(word) > _LETTERS for word in words):
                return at
    return next((at for at, role in enumerate(columns.roles) if role is Role.SIGN), None)


def is_turned(
    lines: Sequence[tuple[Decimal, Decimal]], *, is_newest_first: bool | None = None
) -> bool | None:
    """Compare each amount with the step of the balance after it; None if the balance says nothing."""
    orders = [lines, lines[::-1]] if is_newest_first is None else [lines[::-1] if is_newest_first else lines]
    steps = [
        [(amount, after - before) for (_, before), (amount, after) in pairwise(order) if amount]
        for order in orders
    ]
    count = len(steps[0])
    if count < _FEWEST_STEPS:
        return None
    agreeing = max(sum(amount == step for amount, step in order) for order in steps)
    opposite = max(sum(amount == -step for amount, step in order) for order in steps)
    if max(agreeing, opposite) < _FITTING * count:
        return None
    return opposite > agreeing
