from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from headgate.errors import InvalidRequest
from headgate.model.hiding import HidingRule, RuleId, RuleKind
from headgate.model.ids import FieldName, StreamName
from headgate.policy.hiding import Hider, make_rule

MAIL = StreamName("messages")


def rule(kind: str, text: str, field: str | None = None, stream: str | None = None) -> HidingRule:
    return make_rule(
        RuleId("rul_1"),
        RuleKind(kind),
        text,
        field=None if field is None else FieldName(field),
        stream=None if stream is None else StreamName(stream),
        now=1,
    )


def hides(one: HidingRule, **values: Any) -> bool:
    return Hider([one], MAIL).hides(values)


@pytest.mark.parametrize(
    ("asked", "value", "is_hidden"),
    [
        ("ann@bank.example", "ann@bank.example", True),
        ("ann@bank.example", "Ann <ANN@Bank.Example>", True),
        ("ann@bank.example", "joann@bank.example", False),
        ("*@bank.example", "Ann <ann@bank.example>", True),
        ("*@bank.example", "ann@bank.example.org", False),
        ("a*b*c", "a--b--c", True),
        ("a*bc*c", "abc", False),
        ("ab*ba", "aba", False),
        ("Health", ["work", "health"], True),
        ("Health", ["healthy"], False),
        ("ann", {"name": "Ann", "address": "x"}, True),
        ("7", 7, True),
        ("true", True, True),
        ("stra\u00dfe", "STRASSE", True),
        ("cafe\u0301", "caf\u00e9", True),
        ("none", None, False),
        ("*@bank.example", "Bank <x@bank.example> (Bank)", True),
        ("*@bank.example", '"x@bank.example"', True),
        ("*@bank.example", "Bank: x@bank.example;", True),
        ("*@bank.example", "Ann <ann@home.example>, <x@bank.example>", True),
        ("*@bank.example", '"x y"@bank.example', True),
        ("*@bank.example", "x(the bank)@bank.example", True),
        ("*@bank.example", "x @ bank.example", True),
        ("*@bank.example", "mailto:x@bank.example", True),
        ("*@bank.example", "write to x@bank.example.", True),
        ("*@bank.example", "x\uff20bank.example", True),
        ("*@bank.example", "x@ba\u200bnk.exam\u00adple", True),
        ("x@bank.example", "Bank (x@bank.example)", True),
        ("x@bank.example", "Bank <y@bank.example> (Bank)", False),
    ],
)
def test_a_rule_by_value_hides_records_whose_field_has_it(asked: str, value: Any, *, is_hidden: bool):
    assert hides(rule("value", asked, "from"), **{"from": value}) is is_hidden
    assert not hides(rule("value", asked, "from"), to=value)


@pytest.mark.parametrize(
    ("asked", "text", "is_hidden"),
    [
        ("salary", "About my Salary, again", True),
        ("salary", "salaryman", False),
        ("new job", "The NEW\n  job starts", True),
        ("new job", "a new kind of job", False),
        ("c++", "I write C++.", True),
        ("\u85ac", "\u6628\u65e5\u85ac\u3092", True),
        ("test result", "Your test-result: _test_ \u2013 result!", True),
        ("test result", "\uff34\uff45\uff53\uff54 result", True),
        ("resume", "my r\u00e9sum\u00e9", True),
        ("result", "x\u2100result\u2100y", True),
        ("7 8", {"a": ["7"], "b": 1, "c": "8"}, True),
        ("1", {"b": 1}, True),
    ],
)
def test_a_rule_by_words_hides_records_with_these_words_in_a_row(asked: str, text: str, *, is_hidden: bool):
    assert hides(rule("words", asked), subject="x", body={"parts": [text]}) is is_hidden
    assert not hides(rule("words", asked, "subject"), body=text)


#: What a sender can put into a word without a reader seeing it.
UNSEEN = "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2063\u2069\ufe00\ufe0f\ufeff\U000e0041"


@pytest.mark.parametrize("character", UNSEEN, ids=lambda character: f"{ord(character):04x}")
def test_characters_that_are_not_seen_keep_no_rule_from_hiding(character: str):
    written = f"te{character}st{character} re{character}sult 48{character}2913"
    assert hides(rule("words", "test result"), body=written)
    assert hides(rule("words", f"te{character}st result"), body="test result")
    assert hides(rule("value", "test * 482913", "body"), body=written)
    assert hides(rule("pattern", "test result"), body=written)
    assert hides(rule("set", "one-time-codes"), body=f"your o{character}tp is 48{character}2913")


def test_a_rule_by_pattern_hides_what_matches_in_any_case():
    iban = rule("pattern", r"\bde\d{2} ?(\d{4} ?){4}\d{2}\b")
    assert hides(iban, body="To DE89 3704 0044 0532 0130 00, please")
    assert not hides(iban, body="DE 8")


def test_a_rule_of_one_stream_leaves_the_others_alone():
    other = Hider([rule("words", "x", stream="notes")], MAIL)
    assert not other
    assert not other.hides({"a": "x"})


@pytest.mark.parametrize(
    "text",
    [
        "Your verification code is 482913.",
        "482 913 is your Example verification code. Do not share it.",
        "G-482913 is your Google verification code",
        "Use one-time password 4829 to sign in",
        "Ihr Bestätigungscode lautet: 482913",
        "Votre code de vérification : 482913",
        "Tu código de verificación es 482913",
        "Your OTP for the payment is 482913. Valid for 5 minutes",
        "Your Example passcode\n\n482913\n\nexpires soon",
        "12345 is your WhatsApp code",
    ],
)
def test_messages_with_a_one_time_code_are_recognised(text: str):
    assert hides(rule("set", "one-time-codes"), subject="Hello", body=text)


def test_a_code_in_the_body_belongs_to_the_words_in_the_subject():
    codes = rule("set", "one-time-codes")
    assert hides(codes, subject="Your security code", body="Hi Ann,\nhere it is:\n 9921 \nBye")


@pytest.mark.parametrize(
    "text",
    [
        "Invoice 482913 of 12.03.2026",
        "The verification code was in the other message.",
        "Please call +49 30 4829130 about the roof",
        "Our security code of conduct changed in " + "x " * 200 + "2026",
        "We are tan after the holidays, it cost 1.250,00 in all",
    ],
)
def test_other_messages_are_not_taken_for_one_time_codes(text: str):
    assert not hides(rule("set", "one-time-codes"), body=text)


@pytest.mark.parametrize(
    "text",
    [
        "Reset your Example password",
        "We got a request to reset the password of your account",
        "Password reset requested",
        "Passwort zurücksetzen",
        "Réinitialisez votre mot de passe",
        "Restablecer la contraseña",
    ],
)
def test_password_resets_are_recognised(text: str):
    assert hides(rule("set", "password-resets"), subject=text)
    assert not hides(rule("set", "password-resets"), subject="The password of the week is roof")


@pytest.mark.parametrize(
    ("kind", "text", "field"),
    [
        ("value", "x", None),
        ("value", "**", "from"),
        ("words", "  ", None),
        ("words", "--", None),
        ("words", "x" * 501, None),
        ("pattern", "(", None),
        ("pattern", r"(a)\1", None),
        ("pattern", "x*", None),
        ("pattern", "(a{1000}){1000}", None),
        ("set", "codes", None),
    ],
)
def test_a_rule_that_cannot_work_is_refused(kind: str, text: str, field: str | None):
    with pytest.raises(InvalidRequest):
        rule(kind, text, field)


@given(
    st.text(max_size=30).filter(lambda text: text.strip() and "*" not in text), st.lists(st.text(max_size=9))
)
def test_a_value_hides_itself_whatever_stands_beside_it(value: str, others: list[str]):
    assert hides(rule("value", value, "f"), f=[*others, value])
    assert hides(rule("value", value[:5].strip() + "*" if value[:5].strip() else value, "f"), f=value.strip())
