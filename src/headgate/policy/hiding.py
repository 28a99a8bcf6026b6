"""Decide which records no client ever sees: compare a record with the owner's rules. Pure.

No comparison takes longer than a constant for each character of a record, whatever the rule says.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import jsonschema_rs
import msgspec

from headgate.errors import InvalidRequest
from headgate.model.hiding import MAX_RULE_CHARS, HidingRule, ReadySet, RuleId, RuleKind
from headgate.model.ids import FieldName, StreamName
from headgate.words import query_words, without_unseen, words_of

#: How large a regular expression may become when it is compiled, in bytes.
_PATTERN_BYTES = 1 << 20
#: How far a code may stand from the words that name it.
_NEAR_CHARS = 200
#: What may be an address in a text such as 'Ann <ann@example.org> (Ann)': what stands in brackets, and what is around an @.
_BRACKETS = re.compile(r"<([^<>]*)>")
_ADDRESS = re.compile(r"""[^\s<>()\[\],;:"]* ?@ ?[^\s<>()\[\],;:"]+""")
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
#: Raise it when a rule finds other records than before: a store notes it, and compares its records again.
VERSION = 2


class RecordTexts:
    """The texts of one record, as rules compare them; folded once for all rules."""

    __slots__ = ("_folded", "_values", "_words")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._folded: dict[str, list[str]] = {}
        self._words: dict[str, list[str]] = {}

    def plain(self, field: FieldName | None) -> list[str]:
        """Return the texts of a field, or of all fields, as they stand and as they are seen."""
        return [
            form
            for name in self._names(field)
            for text in _texts(self._values.get(name))
            for form in _forms(text)
        ]

    def folded(self, field: FieldName | None) -> list[str]:
        """Return the same without regard to case and to how characters are composed."""
        return [text for name in self._names(field) for text in self._of(name, self._folded, _folded_texts)]

    def words(self, field: FieldName | None) -> list[str]:
        """Return the words of a field, or of each field, as a search cuts them."""
        return [text for name in self._names(field) for text in self._of(name, self._words, _texts_in_words)]

    def _names(self, field: FieldName | None) -> Iterable[str]:
        return self._values if field is None else (field,)

    def _of(self, name: str, known: dict[str, list[str]], make: Callable[[Any], Iterator[str]]) -> list[str]:
        texts = known.get(name)
        if texts is None:
            texts = known[name] = list(make(self._values.get(name)))
        return texts


class Hider:
    """The rules that apply to one stream."""

    __slots__ = ("_tests",)

    def __init__(self, rules: Sequence[HidingRule], stream: StreamName) -> None:
        self._tests = [_test_of(rule) for rule in rules if rule.stream in {None, stream}]

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._tests)

    def hides(self, values: Mapping[str, Any]) -> bool:
        """Return whether any rule hides a record."""
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
    """Make a rule of what the owner typed."""
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
    rule = HidingRule(rule_id, kind, text, field, stream, now)
    if kind is RuleKind.PATTERN and _pattern(text)(""):
        raise InvalidRequest("The pattern matches an empty text, and would hide everything.", param="text")
    return rule


def _fold(text: str) -> str:
    """Write a text as it is seen, without regard to case and to how characters are composed; white space becomes one blank."""
    return " ".join(without_unseen(unicodedata.normalize("NFKC", text)).casefold().split())


def _folded_texts(value: Any) -> Iterator[str]:
    return map(_fold, _texts(value))


def _forms(text: str) -> Iterator[str]:
    """Return a text as it stands and, if that differs, as it is seen."""
    yield text
    seen = without_unseen(unicodedata.normalize("NFKC", text))
    if seen != text:
        yield seen


def _texts_in_words(value: Any) -> Iterator[str]:
    """Return the words of a value, each with a blank before and after it.

    As in a search, texts of a list or an object follow each other. Numbers are not searched, and stand alone.
    """
    every = list(_scalars(value))
    joined = "\n".join(entry for entry in every if isinstance(entry, str))
    for text in (joined, *(_written(entry) for entry in every if not isinstance(entry, str))):
        for form in _forms(text):
            yield f" {' '.join(words_of(form))} "


def _test_of(rule: HidingRule) -> _Test:
    field = rule.field
    match rule.kind:
        case RuleKind.VALUE:
            equals = _wildcard(_fold(rule.text))
            return lambda texts: any(
                equals(text) or _has_address(text, equals) for text in texts.folded(field)
            )
        case RuleKind.WORDS:
            phrases = {_phrase(form) for form in _forms(rule.text)}
            return lambda texts: any(phrase in word for word in texts.words(field) for phrase in phrases)
        case RuleKind.PATTERN:
            matches = _pattern(rule.text)
            return lambda texts: any(matches(text) for text in texts.plain(field))
        case RuleKind.SET:
            recognises = _SETS[ReadySet(rule.text)]
            return lambda texts: recognises("\n".join(texts.folded(field)))


def _texts(value: Any) -> Iterator[str]:
    """Return every text in a value; numbers and truth values as JSON writes them."""
    return map(_written, _scalars(value))


def _written(scalar: str | float) -> str:
    return scalar if isinstance(scalar, str) else msgspec.json.encode(scalar).decode()


def _scalars(value: Any) -> Iterator[str | float]:
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _scalars(item)
    elif isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            yield from _scalars(item)
    elif value is not None:
        yield value


def _phrase(text: str) -> str:
    """Write words in a row as `_texts_in_words` does; a single character of Chinese may have others after it."""
    words, is_prefix = query_words(text, is_prefix=False)
    return f" {' '.join(words)}" + ("" if is_prefix else " ")


def _has_address(text: str, equals: Callable[[str], bool]) -> bool:
    """Return whether a text such as 'Ann <ann@example.org> (Ann)' holds the address, in whatever form."""
    return any(equals(match[1].strip()) for match in _BRACKETS.finditer(text)) or any(
        equals(match[0].replace(" ", "").strip(".'")) for match in _ADDRESS.finditer(text)
    )


def _wildcard(pattern: str) -> Callable[[str], bool]:
    """Compare with a text in which ``*`` stands for any characters."""
    first, *others = pattern.split("*")
    if not others:
        return lambda text: text == pattern
    *middle, last = others

    def matches(text: str) -> bool:
        if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
            return False
        at, end = len(first), len(text) - len(last)
        for part in middle:
            place = text.find(part, at, end)
            if place < 0:
                return False
            at = place + len(part)
        return True

    return matches


@functools.lru_cache(maxsize=256)
def _pattern(text: str) -> Callable[[str], bool]:
    """Compile a regular expression by an engine that never goes back, so that no text makes it slow."""
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
        _CODE.search(text, max(0, name.start() - _NEAR_CHARS), name.end() + _NEAR_CHARS)
        for name in _CODE_NAMES.finditer(text)
    )


_SETS: Mapping[ReadySet, Callable[[str], bool]] = {
    ReadySet.ONE_TIME_CODES: _is_one_time_code,
    ReadySet.PASSWORD_RESETS: lambda text: _RESETS.search(text) is not None,
}
