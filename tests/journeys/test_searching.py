"""By the text alone: search, page through the hits, open them, and read on where they matched."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.journeys.agent import TextAgent, ids_in
from tests.journeys.sessions import SharedHome
from tests.journeys.worlds import WAYS, WrittenWorld

#: A word, and the fields that are searched, by world.
SEARCHES = {
    "stitched": [("bridge", ("subject", "body", "text")), ("minutes", ("subject", "body", "text"))],
    "crowd": [("rent", ("note",))],
    "shapes": [("bridge", ("label", "body", "title")), ("世界は広い", ("題", "本文", "title", "body"))],
}
SEARCHED = {"messages", "payments", "texts", "papers", "日記", "letters"}


def matching(truth: WrittenWorld, word: str, fields: tuple[str, ...]) -> int:
    texts = [
        [str(record.get(name, "")).casefold() for name in fields]
        for (_, stream), records in truth.written.items()
        if stream in SEARCHED
        for record in records
    ]
    return sum(any(word in text for text in several) for several in texts)


def read_on(agent: TextAgent, text: str) -> Iterator[str]:
    """Make the call that each hit with an incomplete field offers."""
    pattern = r"\[(\S+|\".*?\"): read from (\d+)(?: of \d+)?\]\n   id=(.*)$"
    for path, offset, record_id in re.findall(pattern, text, re.MULTILINE):
        place = {"id": record_id, "field_path": path.strip('"'), "offset_chars": int(offset)}
        yield agent.ask("read_record_field", **place)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("world", SEARCHES)
def test_every_hit_is_shown_once_and_can_be_opened(home: SharedHome, world: str, way: str):
    agent, truth = TextAgent(home.session(world, way)), home.worlds[world]
    for word, fields in SEARCHES[world]:
        expected = matching(truth, word, fields)
        for limit in (25, 100):
            seen = agent.pages("search", q=word, limit=limit, collapse=False)
            assert len(seen) == len(set(seen)) == expected > 0
        for one in seen[:: max(1, expected // 10)]:
            reading = agent.read(one)
            assert word in str([*reading.values.values(), *reading.unnamed]).casefold()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("world", "word"), [("stitched", "minutes"), ("shapes", "世界は広い"), ("shapes", "canal")]
)
def test_a_hit_in_a_long_field_leads_to_the_words_around_it(
    home: SharedHome, world: str, word: str, way: str
):
    agent = TextAgent(home.session(world, way))
    text = agent.ask("search", query=word)
    windows = list(read_on(agent, text))
    assert len(ids_in(text)) >= len(windows) > 0
    assert all(word in window.casefold() for window in windows)
