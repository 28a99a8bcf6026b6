"""What the columns of a bank's table mean, by their names in several languages."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property
from importlib import resources

_CURRENCIES = [
    "eur",
    "usd",
    "gbp",
    "chf",
    "cad",
    "aud",
    "sek",
    "nok",
    "dkk",
    "pln",
    "czk",
    "jpy",
    "mxn",
    "brl",
]
_AMOUNT_WITH_CURRENCY = re.compile(rf"^(.{{4,}}?)(?:in|en)?({'|'.join(_CURRENCIES)})$")
IBAN = re.compile(r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?")
_IN_BRACKETS = re.compile(r"[(\[]([^)\]]*)[)\]]")
_SYMBOLS = {"€": "EUR", "£": "GBP", "$": "USD"}
#: Fewer known columns than half, and the table is about something else; but banks with many columns have many unknown
#: ones, and then enough of them are those that only banks have.
_KNOWN_SHARE = 0.5
_WIDE_SHARE = 0.3
_WIDE_ROLES = 6


class Role(StrEnum):
    BOOKED = "booked"
    VALUE = "value"
    AMOUNT = "amount"
    DEBIT = "debit"
    CREDIT = "credit"
    SIGN = "sign"
    CURRENCY = "currency"
    COUNTERPARTY = "counterparty"
    PAYER = "payer"
    PAYEE = "payee"
    OTHER_ACCOUNT = "other_account"
    DESCRIPTION = "description"
    KIND = "kind"
    CATEGORY = "category"
    STATUS = "status"
    REFERENCE = "reference"
    BANK_ID = "bank_id"
    BALANCE = "balance"
    ACCOUNT = "account"
    #: Which of several accounts without numbers: "Current", "Savings".
    PRODUCT = "product"
    #: Known of banks, and not worth a field.
    DETAIL = "detail"


#: Columns that only the tables of banks have: any table has days, values and types.
_OF_BANKS = frozenset(
    {Role.VALUE, Role.BALANCE, Role.SIGN, Role.OTHER_ACCOUNT, Role.ACCOUNT, Role.DEBIT, Role.CURRENCY}
)
_TEXTS = frozenset({Role.DESCRIPTION, Role.COUNTERPARTY, Role.PAYEE, Role.PAYER})
#: The other party at one bank, and the owner of the account at the next, beside a column that is clear.
_EITHER_PARTY = frozenset({"name", "naam"})
#: Letters that are no other letter with an accent.
_PLAIN_LETTERS = str.maketrans("øłđı", "oldi")
#: Names of columns that hold the account itself at one bank, and the account of the other party at the next.
_EITHER_ACCOUNT = frozenset(
    {
        "iban",
        "konto",
        "kontonummer",
        "account",
        "accountnumber",
        "accountno",
        "compte",
        "numerodecompte",
        "cuenta",
    }
    | {"numerodecuenta", "rekening", "rekeningnummer", "ibanbban", "conto"}
)


@dataclass(frozen=True)
class Columns:
    """Where each role stands in a row."""

    names: tuple[str, ...]
    roles: tuple[Role | None, ...]
    #: The currency that the name of the amount's column has.
    currency: str | None = None

    @cached_property
    def _places(self) -> Mapping[Role, list[int]]:
        return {role: [at for at, known in enumerate(self.roles) if known is role] for role in Role}

    def first(self, row: Sequence[str], role: Role) -> str:
        for at in self._places[role]:
            if at < len(row) and (text := row[at].strip()):
                return text
        return ""

    def every(self, row: Sequence[str], role: Role) -> list[str]:
        return [text for at in self._places[role] if at < len(row) and (text := row[at].strip())]

    def has_only(self, row: Sequence[str], role: Role) -> bool:
        """Return whether a row has text, and only in the columns of a role."""
        filled = {
            self.roles[at] if at < len(self.roles) else None for at, cell in enumerate(row) if cell.strip()
        }
        return filled == {role}

    def others(self, row: Sequence[str]) -> dict[str, str]:
        """Return the texts of the columns that no field holds, by their names."""
        seen: set[Role] = set()
        more: dict[str, str] = {}
        for name, role, cell in zip(self.names, self.roles, row, strict=False):
            is_held = role is Role.DESCRIPTION or (role not in {None, Role.DETAIL} and role not in seen)
            if role is not None:
                seen.add(role)
            if cell.strip() and not is_held:
                more[name] = cell.strip()
        return more


def columns_of(row: Sequence[str], *, is_older: bool = False) -> Columns | None:
    """Read a row as the head of a bank's table; None if it is not one. `is_older`: as before the fourth form."""
    names = tuple(cell.strip() for cell in row)
    if len(names) < 3:  # noqa: PLR2004 - a day, an amount and a text
        return None
    roles = tuple(_role(name, _roles(is_older=is_older)) for name in names)
    amounts = (name for name, role in zip(names, roles, strict=True) if role is Role.AMOUNT)
    columns = Columns(names, roles, _currency(next(amounts, "")))
    return columns if _is_bank(columns, is_older=is_older) else None


def _is_bank(columns: Columns, *, is_older: bool) -> bool:
    roles = set(columns.roles)
    has_day = not roles.isdisjoint({Role.BOOKED, Role.VALUE})
    has_amount = Role.AMOUNT in roles or {Role.DEBIT, Role.CREDIT} <= roles
    is_of_bank = not is_older and (columns.currency is not None or not roles.isdisjoint(_OF_BANKS))
    has_text = not roles.isdisjoint(_TEXTS) or (is_of_bank and Role.KIND in roles)
    counted = [role for role, name in zip(columns.roles, columns.names, strict=True) if name]
    named = sum(role is not Role.DETAIL for role in counted)
    known = sum(role not in {None, Role.DETAIL} for role in counted)
    is_wide = is_of_bank and len(roles - {None, Role.DETAIL}) >= _WIDE_ROLES
    share = _WIDE_SHARE if is_wide else _KNOWN_SHARE
    return has_day and has_amount and has_text and known >= share * named


def with_values(columns: Columns, rows: Sequence[Sequence[str]]) -> Columns:
    """Decide by the values what names leave open: which column has the text, and which the name of the other party."""
    roles = list(columns.roles)
    for at, role in enumerate(roles):
        cells = [row[at].strip() for row in rows if at < len(row) and row[at].strip()]
        if role is Role.COUNTERPARTY and cells and all(IBAN.fullmatch(cell) for cell in cells):
            roles[at] = Role.OTHER_ACCOUNT
    parties = [at for at, role in enumerate(roles) if role is Role.COUNTERPARTY]
    unclear = [at for at in parties if _plain_name(columns.names[at]) in _EITHER_PARTY]
    if len(unclear) < len(parties):
        for at in unclear:
            roles[at] = None
    if _TEXTS.isdisjoint(roles):
        roles[max(at for at, role in enumerate(roles) if role is Role.KIND)] = Role.DESCRIPTION
    return replace(columns, roles=tuple(roles))


def with_other_accounts(columns: Columns, rows: Sequence[Sequence[str]], own_number: str) -> Columns:
    """Find out whose numbers a column such as IBAN holds: the account's, or those of the other parties.

    The number of the account, if the file names it, is what the account's column holds. Without it the values tell: the
    account is there in every row, and one account has many rows.
    """
    if Role.OTHER_ACCOUNT in columns.roles:
        return columns
    accounts = [at for at, role in enumerate(columns.roles) if role is Role.ACCOUNT]
    unclear = {at for at in accounts if _plain_name(columns.names[at]) in _EITHER_ACCOUNT}
    paid = [row for row in rows if columns.first(row, Role.BOOKED) or columns.first(row, Role.VALUE)]
    has_own = len(unclear) < len(accounts)
    others = {at for at in unclear if has_own or _are_others([_number(row, at) for row in paid], own_number)}
    roles = (Role.OTHER_ACCOUNT if at in others else role for at, role in enumerate(columns.roles))
    return replace(columns, roles=tuple(roles))


def _are_others(numbers: Sequence[str], own_number: str) -> bool:
    different = set(numbers)
    own = _plain_name(own_number)
    if own and different - {""}:
        # An IBAN ends with the number that the bank calls the account by.
        return not any(number.endswith(own) or own.endswith(number) for number in different if number)
    return bool(different - {""}) and (
        "" in different or (len(numbers) > 1 and len(different) > len(numbers) / 2)
    )


def _number(row: Sequence[str], at: int) -> str:
    return _plain_name(row[at]) if at < len(row) else ""


def _role(name: str, known: Mapping[str, Role]) -> Role | None:
    plain = _plain_name(_IN_BRACKETS.sub("", name)) or _plain_name(name)
    if plain in known:
        return known[plain]
    without_number = plain.rstrip("0123456789")
    match = _AMOUNT_WITH_CURRENCY.match(plain)
    return known.get(without_number) or (known.get(match[1]) if match else None)


def _currency(name: str) -> str | None:
    if symbol := next((code for symbol, code in _SYMBOLS.items() if symbol in name), None):
        return symbol
    bracket = _IN_BRACKETS.search(name)
    last = _plain_name(bracket[1] if bracket else name)[-3:]
    return last.upper() if last in _CURRENCIES else None


def _plain_name(name: str) -> str:
    """Write a name without accents, marks and spaces, in lower case."""
    letters = unicodedata.normalize("NFKD", name[:200].casefold()).translate(_PLAIN_LETTERS)
    return "".join(letter for letter in letters if letter.isalnum())


@cache
def _roles(*, is_older: bool) -> Mapping[str, Role]:
    """Return what columns hold by their names; `is_older`: by those that were read before the fourth form."""
    table = resources.files("headgate.sources.money") / "column_names.toml"
    names: Mapping[str, Mapping[str, str]] = tomllib.loads(table.read_text(encoding="utf-8"))
    forms = ("always",) if is_older else ("always", "later")
    return {
        _plain_name(name): Role(role)
        for form in forms
        for role, words in names[form].items()
        for name in words.split()
    }
