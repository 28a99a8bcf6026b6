"""What a question names beside its words, in ten languages, and what is left alone."""

from __future__ import annotations

import tomllib
from datetime import date
from importlib import resources

import pytest
from hypothesis import given, strategies as st

from headgate.model.asked import Asked
from headgate.questions.recognise import recognise
from headgate.store.format.languages import STOP_WORDS
from headgate.words import words_of

#: A Wednesday.
TODAY = date(2026, 11, 18)

DAYS = [
    ("canal today", "2026-11-18", "2026-11-18"),
    ("canal yesterday", "2026-11-17", "2026-11-17"),
    ("canal last week", "2026-11-09", "2026-11-15"),
    ("canal this week?", "2026-11-16", "2026-11-22"),
    ("canal in the next month", "2026-12-01", "2026-12-31"),
    ("canal last weekend", "2026-11-14", "2026-11-15"),
    ("canal last quarter", "2026-07-01", "2026-09-30"),
    ("canal over the last 3 weeks", "2026-10-28", "2026-11-18"),
    ("canal two months ago", "2026-09-01", "2026-09-30"),
    ("canal last spring", "2026-03-01", "2026-05-31"),
    ("last March canal", "2026-03-01", "2026-03-31"),
    ("what of the canal in May", "2026-05-01", "2026-05-31"),
    ("canal March 2024", "2024-03-01", "2024-03-31"),
    ("canal summer of 2023", "2023-06-01", "2023-08-31"),
    ("canal in 2019", "2019-01-01", "2019-12-31"),
    ("canal last Friday", "2026-11-13", "2026-11-13"),
    ("canal the week before Easter", "2026-03-29", "2026-04-04"),
    ("canal the week after Christmas 2024", "2024-12-27", "2025-01-02"),
    ("canal at Easter 2025", "2025-04-18", "2025-04-21"),
    ("Kanal letzte Woche", "2026-11-09", "2026-11-15"),
    ("Kanal im März", "2026-03-01", "2026-03-31"),
    ("Kanal vor 3 Wochen", "2026-10-26", "2026-11-01"),
    ("Kanal in der Woche vor Ostern", "2026-03-29", "2026-04-04"),
    ("le canal la semaine dernière", "2026-11-09", "2026-11-15"),
    ("le canal l'été dernier", "2026-06-01", "2026-08-31"),
    ("el canal la semana pasada", "2026-11-09", "2026-11-15"),
    ("el canal en marzo de 2025", "2025-03-01", "2025-03-31"),
    ("il canale la settimana scorsa", "2026-11-09", "2026-11-15"),
    ("il canale la settimana prima di Pasqua", "2026-03-29", "2026-04-04"),
    ("o canal na semana passada", "2026-11-09", "2026-11-15"),
    ("het kanaal vorige week", "2026-11-09", "2026-11-15"),
    ("het kanaal 2 jaar geleden", "2024-01-01", "2024-12-31"),
    ("kanalen förra veckan", "2026-11-09", "2026-11-15"),
    ("kanalen i mars", "2026-03-01", "2026-03-31"),
    ("kanalen sidste forår", "2026-03-01", "2026-05-31"),
    ("канал на прошлой неделе", "2026-11-09", "2026-11-15"),
    ("канал в марте 2025 года", "2025-03-01", "2025-03-31"),
]


def days(asked: Asked) -> list[tuple[str, str]]:
    return [(str(each.since), str(each.until)) for each in asked.days]


@pytest.mark.parametrize(("q", "first", "last"), DAYS)
def test_a_period_becomes_days_and_is_no_word_any_more(q: str, first: str, last: str):
    asked = recognise(q, TODAY)
    assert asked is not None
    (since, until) = days(asked)[0]
    assert (since, str(date.fromisoformat(until).toordinal())) == (
        first,
        str(date.fromisoformat(last).toordinal() + 1),
    )
    assert len(asked.phrases) == len(asked.days) == 1
    assert set(words_of(asked.q)) == set(words_of(q)) - set(words_of(asked.phrases[0].text))
    assert any(word.startswith(("can", "kan", "кан")) for word in words_of(asked.q))


@pytest.mark.parametrize(
    ("q", "since", "until"),
    [
        ("canal since March", "2026-03-01", None),
        ("canal before Easter", None, "2026-04-03"),
        ("canal after 2024", "2025-01-01", None),
        ("Kanal seit letzter Woche", "2026-11-09", None),
        ("canal jusqu'en mars 2025", None, "2025-04-01"),
        ("канал после марта", "2026-04-01", None),
    ],
)
def test_what_stands_before_a_period_opens_one_end(q: str, since: str | None, until: str | None):
    asked = recognise(q, TODAY)
    assert asked is not None
    assert days(asked) == [(str(since), str(until))]


def test_a_month_without_a_year_is_the_last_one_and_the_next_one_if_that_is_soon():
    assert [str(each.since) for each in recognise("canal in December", TODAY).days] == [
        "2025-12-01",
        "2026-12-01",
    ]
    assert [str(each.since) for each in recognise("canal in June", TODAY).days] == ["2026-06-01"]
    assert [str(each.since) for each in recognise("canal winter 2024", TODAY).days] == [
        "2023-12-01",
        "2024-12-01",
    ]


@pytest.mark.parametrize(
    "q",
    [
        "may the force",
        "march of the penguins",
        "sun and moon",
        "last second goal",
        "the second letter",
        "spring cleaning",
        "fall of the wall",
        "train from Berlin",
        "email from the bank",
        "12 March 2025 canal",
        "canal in March 5",
        '"last week" canal',
        "canal -today",
        "canal today OR birch",
        "canal in March or in April",
        "canal in 2087",
        "canal between March 2024",
        "the last week of March canal",
        "last day of school",
        "last week",
        "latest -canal",
        "hier ist der Kanal",
        "canal 999 years ago",
        "",
        "OR",
    ],
)
def test_what_may_be_something_else_stays_a_word(q: str):
    assert recognise(q, TODAY) is None


@pytest.mark.parametrize(
    ("q", "sender", "words"),
    [
        ("emails from Anna about the roof", "Anna", "Anna about the roof"),
        ("invoice from Vodafone", "Vodafone", "invoice Vodafone"),
        ("letter from anna@example.com roof", "anna@example.com", "letter anna@example.com roof"),
        ("Rechnung von Müller", "Müller", "Rechnung Müller"),
        ("courriels d'Anne", None, None),
        ("письмо от Анны", "Анны", "Анны"),
        ("mail from last week about roofs", None, "mail from about roofs"),
    ],
)
def test_a_sender_is_named_beside_a_word_for_mail(q: str, sender: str | None, words: str | None):
    asked = recognise(q, TODAY)
    assert (asked and asked.sender, asked and asked.q) == (sender, words)


def test_the_newest_first_and_what_is_asked_for_are_recognised():
    newest = recognise("latest invoice from Vodafone", TODAY)
    assert newest.is_latest
    assert (newest.sender, newest.q) == ("Vodafone", "invoice Vodafone")
    assert recognise("when did I last see the dentist", TODAY).is_latest
    asks = {
        "who wrote it": "person",
        "when was it": "time",
        "how much was it": "amount",
        "wann war es": "time",
    }
    for q, kind in asks.items():
        assert [phrase.asks for phrase in recognise(q, TODAY).phrases] == [kind]
    assert recognise("the roof, how much", TODAY) is None


def test_every_language_with_stop_words_has_its_table():
    text = (resources.files("headgate.questions") / "languages.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text).keys() == STOP_WORDS.keys()


PIECES = (
    "canal",
    "last",
    "week",
    "in",
    "march",
    "2024",
    '"a b"',
    "-x",
    "OR",
    "from",
    "anna",
    "email",
    "3",
    "ago",
    "*",
    "ß",
    "в",
    "марте",
)


@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=10).map(" ".join),
    st.dates(date(1971, 1, 1), date(2090, 1, 1)),
)
def test_any_question_keeps_words_and_only_those_that_it_had(q: str, today: date):
    asked = recognise(q, today)
    if asked is not None:
        assert words_of(asked.q)
        assert set(asked.q.split()) <= set(q.split()) | set(q.replace('"', ' "').split())
        assert asked.phrases
        assert recognise(asked.q, today) is None or asked.q != q
