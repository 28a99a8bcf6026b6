"""Decide which records no client ever sees: compare a record with the owner's rules. Pure.

No comparison takes longer than a constant for each character of a record, whatever the rule says.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import jsonschema_rs
import msgspec

from headgate.errors import InvalidRequest
from headgate.model.hiding import MAX_RULE_CHARS, HidingRule, ReadySet, RuleId, RuleKind
from headgate.model.ids import FieldName, StreamName

#: How large a regular expression may become when it is compiled, in bytes.
_PATTERN_BYTES = 1 << 20
#: How far a code may stand from the words that name it.
_NEAR_CHARS = 200
_ADDRESS = re.compile(r"<([^<>]*)>\s*$")
_CODE_NAMES = re.compile(
    r"\bone[- ]time (?:pass ?code|password|pin|code)\b|\b(?:verification|security|log[- ]?in|sign[- ]?in"
    r"|authentication|authorization|two[- ]factor|2fa|2-step) (?:pass)?(?:code|pin)\b|\bpasscode\b|\botp\b|\bm?tan\b"
    r"|\b(?:bestätigungs|verifizierungs|sicherheits|anmelde|einmal)-?(?:code|pin)\b|\beinmal(?:kenn|pass)wort\b"
    r"|\bcode (?:de|d\W) ?(?:vérification|sécurité|confirmation|connexion|authentification)\b"
    r"|\bcódigo de (?:verificación|seguridad|confirmación|acceso|verificação|segurança)\b"
    r"|\bcodice di (?:verifica|sicurezza|accesso)\b|\b(?:verificatie|beveiligings|inlog)code\b"
    r"|\bis your \S{1,40} (?:pass)?code\b|\byour \S{1,40} (?:pass)?code is\b"
)
_CODE = re.compile(r"(?<![\w.,/:+#-])(?:\d{4,8}|\d{3}[ -]\d{3}|[a-z]-\d{5,8})(?![\w/:]|[.,-]\d)")
_RESETS = re.compile(
    r"\bpassword[- ]reset\b|\breset(?:ting)? (?:\S{1,20} ){0,3}password\b|\bforgot(?:ten)? (?:your |my )?password\b"
    r"|\b(?:pass|kenn)wort (?:zurück(?:zu)?setzen|vergessen)\b|\bneues (?:pass|kenn)wort (?:festlegen|setzen|vergeben)\b"
    r"|\bréinitialis\w{1,12} (?:\S{1,12} ){0,2}mot de passe\b|\bmot de passe oublié\b"
    r"|\brestable\w{1,12} (?:\S{1,12} ){0,2}contraseña\b|\bredefin\w{1,12} (?:\S{1,12} ){0,2}senha\b"
    r"|\breimposta\w{0,12} (?:\S{1,12} ){0,2}password\b|\bwachtwoord (?:opnieuw instellen|vergeten|herstellen|resetten)\b"
)
_Test = Callable[["RecordTexts"], bool]


class RecordTexts:
    """The texts of one record, as rules compare them; folded once for all rules."""

    __slots__ = ("_folded", "_values")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._folded: dict[str, list[str]] = {}

    def plain(self, field: FieldName | None) -> list[str]:
        """Give the texts of a field, or of all fields, as they stand."""
        names = self._values if field is None else (field,)
        return [text for name in names for text in _texts(self._values.get(name))]

    def folded(self, field: FieldName | None) -> list[str]:
        """Give the same without regard to case and to how characters are composed."""
        names = self._values if field is None else (field,)
        return [text for name in names for text in self._folded_of(name)]

    def _folded_of(self, name: str) -> list[str]:
        found = self._folded.get(name)
        if found is None:
            found = self._folded[name] = [fold(text) for text in _texts(self._values.get(name))]
        return found


class Hider:
    """The rules that apply to one stream."""

    __slots__ = ("_tests",)

    def __init__(self, rules: Sequence[HidingRule], stream: StreamName) -> None:
        self._tests = [_test_of(rule) for rule in rules if rule.stream in {None, stream}]

    def __bool__(self) -> bool:
        """Say whether there are any."""
        return bool(self._tests)

    def hides(self, values: Mapping[str, Any]) -> bool:
        """Say whether any rule hides a record."""
        if not self._tests:
            return False
        texts = RecordTexts(values)
        return any(test(texts) for test in self._tests)


def make_rule(
    rule_id: RuleId,
    kind: RuleKind,
    text: str,
    *,
    field: FieldName | None,
    stream: StreamName | None,
    now: int,
) -> HidingRule:
    """Make a rule of what the owner typed.

    Raises:
        InvalidRequest: it could hide nothing, or everything, or is no regular expression.
    """
    text = text.strip()
    if not text or len(text) > MAX_RULE_CHARS:
        raise InvalidRequest(f"A rule needs a text of 1 to {MAX_RULE_CHARS} characters.", param="text")
    if kind is RuleKind.VALUE and (field is None or not text.strip("*")):
        raise InvalidRequest(
            "A rule by value needs a field, and a value that is not '*' alone.",
            param="field" if field is None else "text",
            hint="Give the field, such as 'from', and its value, such as '*@bank.example'.",
        )
    if kind is RuleKind.WORDS and not any(character.isalnum() for character in text):
        raise InvalidRequest("A rule by words needs at least one word.", param="text")
    if kind is RuleKind.SET and text not in set(ReadySet):
        raise InvalidRequest(
            f"There is no ready set '{text}'.", param="text", hint=f"There are: {', '.join(ReadySet)}."
        )
    made = HidingRule(rule_id, kind, text, field, stream, now)
    if kind is RuleKind.PATTERN and _pattern(text)(""):
        raise InvalidRequest("The pattern matches an empty text, and would hide everything.", param="text")
    return made


def fold(text: str) -> str:
    """Write a text without regard to case and to how characters are composed; white space becomes one blank."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _test_of(rule: HidingRule) -> _Test:
    field = rule.field
    match rule.kind:
        case RuleKind.VALUE:
            equals = _wildcard(fold(rule.text))
            return lambda texts: any(equals(one) or _is_address(one, equals) for one in texts.folded(field))
        case RuleKind.WORDS:
            words = fold(rule.text)
            return lambda texts: any(_holds(one, words) for one in texts.folded(field))
        case RuleKind.PATTERN:
            matches = _pattern(rule.text)
            return lambda texts: any(matches(one) for one in texts.plain(field))
        case RuleKind.SET:
            recognises = _SETS[ReadySet(rule.text)]
            return lambda texts: recognises("\n".join(texts.folded(field)))


def _texts(value: Any) -> Iterator[str]:
    """Give every text in a value; numbers and truth values as JSON writes them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            yield from _texts(item)
    elif value is not None:
        yield msgspec.json.encode(value).decode()


def _is_address(text: str, equals: Callable[[str], bool]) -> bool:
    """Say whether the address of a text such as 'Ann <ann@example.org>' is the one."""
    found = _ADDRESS.search(text)
    return found is not None and equals(found[1].strip())


def _wildcard(asked: str) -> Callable[[str], bool]:
    """Compare with a text in which ``*`` stands for any characters."""
    first, *others = asked.split("*")
    if not others:
        return lambda text: text == asked
    *middle, last = others

    def matches(text: str) -> bool:
        if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
            return False
        at, end = len(first), len(text) - len(last)
        for part in middle:
            found = text.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True

    return matches


def _holds(text: str, words: str) -> bool:
    """Say whether a text holds words in a row, from the beginning of a word to the end of one."""
    start = text.find(words)
    while start >= 0:
        end = start + len(words)
        if not (_is_inside(text, start) or _is_inside(text, end)):
            return True
        start = text.find(words, start + 1)
    return False


def _is_inside(text: str, place: int) -> bool:
    """Say whether a place lies between two letters of one word."""
    return 0 < place < len(text) and _is_letter(text[place - 1]) and _is_letter(text[place])


def _is_letter(character: str) -> bool:
    # Chinese and Japanese are written without blanks: there every letter can end a word.
    return character.isalnum() and unicodedata.east_asian_width(character) not in "WF"


@functools.lru_cache(maxsize=256)
def _pattern(text: str) -> Callable[[str], bool]:
    """Compile a regular expression by an engine that never goes back, so that no text makes it slow.

    Raises:
        InvalidRequest: it is none, or needs an engine that goes back.
    """
    limits = jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    schema = {"type": "string", "pattern": f"(?i)(?:{text})"}
    try:
        return jsonschema_rs.Draft202012Validator(schema, pattern_options=limits).is_valid
    except (jsonschema_rs.ValidationError, ValueError):
        raise InvalidRequest(
            "This is not a regular expression that can be used here.",
            param="text",
            hint="Back references and look-around are not available.",
        ) from None


def _is_one_time_code(text: str) -> bool:
    return any(
        _CODE.search(text, max(0, found.start() - _NEAR_CHARS), found.end() + _NEAR_CHARS)
        for found in _CODE_NAMES.finditer(text)
    )


_SETS: Mapping[ReadySet, Callable[[str], bool]] = {
    ReadySet.ONE_TIME_CODES: _is_one_time_code,
    ReadySet.PASSWORD_RESETS: lambda text: _RESETS.search(text) is not None,
}
