"""One entry is put into a configuration file, and nothing else in it changes."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given, strategies as st

from headgate.agent_programs import toml_table, with_json_entry, with_toml_entry
from headgate.errors import ConfigInvalid

ENTRY = {"command": "headgate", "args": ["mcp"]}
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_values = st.recursive(
    st.booleans() | st.integers() | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_texts, _values, max_size=4), st.dictionaries(_texts, _values, max_size=3))
def test_a_json_file_gets_the_entry_and_keeps_the_rest(other: dict, servers: dict):
    before = {**other, "mcpServers": servers}
    made = json.loads(with_json_entry(json.dumps(before), "mcpServers", "headgate", ENTRY))
    assert made == {**before, "mcpServers": {**servers, "headgate": ENTRY}}
    assert list(made) == list(before)


@pytest.mark.parametrize("text", ["", " \n", "{}"])
def test_an_empty_file_becomes_one_with_the_entry(text: str):
    assert json.loads(with_json_entry(text, "servers", "headgate", ENTRY)) == {"servers": {"headgate": ENTRY}}


@pytest.mark.parametrize(
    "text", ["{ // a comment\n}", "[]", '{"mcpServers": []}', '{"mcpServers": null}', '{"a": 1,}']
)
def test_a_json_file_that_would_lose_something_is_left_alone(text: str):
    with pytest.raises(ConfigInvalid) as refused:
        with_json_entry(text, "mcpServers", "headgate", ENTRY)
    assert "by hand" in refused.value.hint


def test_a_toml_file_keeps_its_comments_and_its_other_servers():
    text = '# mine\nmodel = "x"\n\n[mcp_servers.other] # this one\ncommand = "o"\n\n[tui]\ntheme = "dark"\n'
    made = with_toml_entry(text, "mcp_servers", "headgate", ENTRY)
    assert made.startswith(text.rstrip("\n"))
    assert tomllib.loads(made)["mcp_servers"] == {"other": {"command": "o"}, "headgate": ENTRY}


def test_an_earlier_entry_of_a_toml_file_is_replaced_with_all_its_tables():
    earlier = with_toml_entry('a = 1\n[mcp_servers.headgate]\nurl = "u"\n', "mcp_servers", "headgate", ENTRY)
    text = '[mcp_servers.headgate]\nurl = "u"\n\n[mcp_servers.headgate.http_headers]\nx = "y"\n\n[z]\nb = 2\n'
    made = with_toml_entry(text, "mcp_servers", "headgate", ENTRY)
    assert tomllib.loads(earlier) == {"a": 1, "mcp_servers": {"headgate": ENTRY}}
    assert tomllib.loads(made) == {"z": {"b": 2}, "mcp_servers": {"headgate": ENTRY}}


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        'mcp_servers = { headgate = { url = "u" } }',
        '[mcp_servers]\nheadgate = { url = "u" }',
        "mcp_servers = 3",
    ],
)
def test_a_toml_file_in_an_unusual_form_is_left_alone(text: str):
    with pytest.raises(ConfigInvalid):
        with_toml_entry(text, "mcp_servers", "headgate", ENTRY)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
        _texts | st.lists(_texts, max_size=3) | st.dictionaries(_texts, _texts, max_size=3),
        min_size=1,
        max_size=4,
    )
)
def test_any_entry_can_be_written_as_a_table(entry: dict):
    assert tomllib.loads(toml_table("mcp_servers", "headgate", entry)) == {"mcp_servers": {"headgate": entry}}
