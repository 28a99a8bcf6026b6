"""One entry is put into a configuration file, and nothing else in it changes."""

from __future__ import annotations

import json
import tomllib

import pytest
import yaml
from hypothesis import given, strategies as st

from headgate.agent_programs.merging import (
    Format,
    snippet,
    toml_table,
    with_json_entry,
    with_toml_entry,
    with_yaml_entry,
)
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


def yaml_of(text: str, entry: dict | None = None) -> dict:
    return yaml.safe_load(with_yaml_entry(text, "mcpServers", "headgate", entry or ENTRY))


LISTED = {"name": "headgate", **ENTRY}
YAML_FILES = {
    "": {},
    "# mine\n": {},
    "name: a\nversion: 1\n": {"name": "a", "version": 1},
    "name: a\nmcpServers:\n": {"name": "a"},
    "mcpServers: []  # none yet\nmodels:\n- name: m\n": {"models": [{"name": "m"}]},
    "models:\n  - name: headgate\n    note: |\n      mcpServers:\n      x\n": {
        "models": [{"name": "headgate", "note": "mcpServers:\nx\n"}]
    },
}


@pytest.mark.parametrize("text", YAML_FILES)
def test_a_yaml_file_without_servers_gets_the_entry_and_keeps_the_rest(text: str):
    assert yaml_of(text) == {**YAML_FILES[text], "mcpServers": [LISTED]}


@pytest.mark.parametrize("indent", ["", "  ", "      "])
def test_a_yaml_file_keeps_its_comments_and_its_other_servers(indent: str):
    others = f"{indent}# the first\n{indent}- name: other\n{indent}  args:\n{indent}    - a # b\n\n{indent}-   name: third\n"
    text = f"# mine\nmcpServers: # here\n{others}\n# the rest\nrules: [a, b]\n"
    made = with_yaml_entry(text, "mcpServers", "headgate", ENTRY)
    servers = [LISTED, {"name": "other", "args": ["a"]}, {"name": "third"}]
    assert yaml.safe_load(made) == {"mcpServers": servers, "rules": ["a", "b"]}
    for line in text.splitlines():
        assert line in made.splitlines()
    again = with_yaml_entry(made, "mcpServers", "headgate", {"url": "u"})
    assert yaml.safe_load(again)["mcpServers"] == [{"name": "headgate", "url": "u"}, *servers[1:]]


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": []}',
        "mcpServers: [{name: a}]\n",
        "mcpServers: {}\n",
        "mcpServers: *other\n",
        "mcpServers:\n  a: 1\n",
        "mcpServers:\n\t- name: a\n",
        "mcpServers:\n  - command: c\n    name: headgate\n",
        "mcpServers:\n  - {name: headgate, command: c}\n",
        "mcpServers:\n  - name: a\nmcpServers:\n  - name: b\n",
        "--- \nname: a\n",
        "name: a\n---\nname: b\n",
        "%YAML 1.2\nname: a\n",
        "- name: a\n",
        '"mcpServers":\n  - name: a\n',
        "? a\n: b\n",
        "just a text\n",
        "mcpServers:\n    - name: a\n  - name: b\n",
    ],
)
def test_a_yaml_file_in_an_unusual_form_is_left_alone(text: str):
    with pytest.raises(ConfigInvalid) as refused:
        with_yaml_entry(text, "mcpServers", "headgate", ENTRY)
    assert "by hand" in refused.value.hint


@given(st.dictionaries(_texts, _values, max_size=3), st.lists(_texts, max_size=3), _texts)
def test_a_yaml_file_as_a_program_writes_it_gets_the_entry_and_keeps_the_rest(
    other: dict, names: list, word: str
):
    servers = [{"name": f"s-{name}", "args": [name]} for name in names]
    document = {"title": other, "mcpServers": servers, "end": word}
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    entry = {"command": word, "args": [word], "env": {"A": word}}
    try:
        made = with_yaml_entry(text, "mcpServers", "headgate", entry)
    except ConfigInvalid:
        return
    # What PyYAML writes is not always what it reads.
    before = yaml.safe_load(text)
    wanted = [{"name": "headgate", **entry}, *before["mcpServers"]]
    assert yaml.safe_load(made) == {**before, "mcpServers": wanted}


def test_a_yaml_file_with_the_ends_of_lines_of_windows_keeps_them():
    made = with_yaml_entry("a: 1\r\nmcpServers:\r\n  - name: b\r\n", "mcpServers", "headgate", ENTRY)
    assert made.count("\n") == made.count("\r\n")
    assert yaml.safe_load(made) == {"a": 1, "mcpServers": [LISTED, {"name": "b"}]}


@pytest.mark.parametrize("file_format", Format)
def test_what_is_printed_is_what_a_new_file_holds(file_format: Format):
    read = {Format.JSON: json.loads, Format.TOML: tomllib.loads, Format.YAML: yaml.safe_load}[file_format]
    servers = read(snippet(file_format, "servers", "headgate", ENTRY))["servers"]
    assert servers == ([LISTED] if file_format is Format.YAML else {"headgate": ENTRY})
