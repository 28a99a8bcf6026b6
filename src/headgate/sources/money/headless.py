"""Tables of banks without a head: what their columns mean, by the values alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import permutations

from headgate.sources.formats.written import DayOrder, amount_of, day_of
from headgate.sources.money.columns import IBAN, Columns, Role
from headgate.sources.money.signs import is_sign_word, is_turned

_MONEY = re.compile(r"[-+]?[0-9][0-9.,' ]*[.,][0-9]{2}[-+]?")
_CURRENCY = re.compile(r"[A-Z]{3}")
#: A table of one row may be anything.
_FEWEST_ROWS = 2
_FEWEST_COLUMNS = 4


def headless_columns(rows: Sequence[Sequence[str]], mark: str) -> Columns | None:
    """Understand rows as a bank's lines; None if they are not.

    Every row has a day, an amount with two decimals and a text, and, what other tables lack, a currency or a word for the
    way that the money went.
    """
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    width = len(filled[0]) if filled else 0
    if len(filled) < _FEWEST_ROWS or width < _FEWEST_COLUMNS or any(len(row) != width for row in filled):
        return None
    cells = [[row[at].strip() for row in filled] for at in range(width)]
    days = _columns(cells, _is_day)
    money = _columns(cells, lambda text: _MONEY.fullmatch(text) is not None)
    currencies = _columns(cells, lambda text: _CURRENCY.fullmatch(text) is not None)
    ways = _columns(cells, is_sign_word)
    numbers = _columns(cells, lambda text: IBAN.fullmatch(text) is not None)
    taken = {*days, *money, *currencies, *ways, *numbers}
    texts = [at for at in range(width) if at not in taken and any(map(_is_text, cells[at]))]
    if not (days and money and texts and (currencies or ways)):
        return None
    roles: list[Role | None] = [None] * width
    for role, places in (
        (Role.VALUE, days[1:2]),
        (Role.BOOKED, days[:1]),
        (Role.CURRENCY, currencies[:1]),
        (Role.ACCOUNT, [at for at in numbers if len(set(cells[at])) == 1][:1]),
        (Role.DESCRIPTION, [max(texts, key=lambda at: len("".join(cells[at])))]),
    ):
        for at in places:
            roles[at] = role
    amount, balance = _amount_and_balance(cells, money, mark)
    roles[amount] = Role.AMOUNT
    if balance is not None:
        roles[balance] = Role.BALANCE
    return Columns(tuple(f"Column {at}" for at in range(1, width + 1)), tuple(roles))


def _columns(cells: Sequence[Sequence[str]], is_one: Callable[[str], bool]) -> list[int]:
    return [at for at, column in enumerate(cells) if all(map(is_one, column))]


def _is_day(text: str) -> bool:
    return any(day_of(text, order) is not None for order in DayOrder)


def _is_text(text: str) -> bool:
    return sum(letter.isalpha() for letter in text) >= _FEWEST_COLUMNS


def _amount_and_balance(
    cells: Sequence[Sequence[str]], money: Sequence[int], mark: str
) -> tuple[int, int | None]:
    """Choose the column of amounts: the one that another changes by, else the one with a sign, else the first."""
    values = {at: [amount_of(text, mark) for text in cells[at]] for at in money}
    for amount, balance in permutations(money, 2):
        lines = [
            (size, after)
            for size, after in zip(values[amount], values[balance], strict=True)
            if size and after
        ]
        if is_turned(lines) is False:
            return amount, balance
    signed = (at for at in money if any(value is not None and value < 0 for value in values[at]))
    return next(signed, money[0]), None
