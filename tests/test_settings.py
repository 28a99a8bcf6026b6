from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from headgate.errors import ConfigInvalid
from headgate.settings import config_path, read_config, resolve

FILE = Path("config.toml")
PLACES = ("flag", "environment", "file", "default")


@given(st.sets(st.sampled_from(PLACES[:3])))
def test_the_first_place_that_has_a_value_wins(places: set[str]):
    resolved = resolve(
        {"port": "1001" if "flag" in places else None},
        {"HEADGATE_PORT": "1002"} if "environment" in places else {},
        {"port": 1003} if "file" in places else {},
        FILE,
    )
    winner = next(place for place in PLACES if place in places or place == "default")
    assert resolved.origins["port"].kind == winner
    assert (
        resolved.settings.port == {"flag": 1001, "environment": 1002, "file": 1003, "default": 8321}[winner]
    )


def test_an_origin_names_its_exact_place():
    resolved = resolve({"log_level": "debug"}, {"HEADGATE_HOST": "::1"}, {"port": 1}, FILE)
    assert resolved.origins["log_level"].place == "--log-level"
    assert resolved.origins["host"].place == "HEADGATE_HOST"
    assert resolved.origins["port"].place == "config.toml"
    assert resolved.origins["home"].place == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("port", "x"),
        ("port", "-1"),
        ("port", "65536"),
        ("port", "٣"),
        ("host", ""),
        ("host", "a b"),
        ("log_level", "loud"),
        ("log_format", "xml"),
        ("home", ""),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_its_name_and_place(name: str, text: str):
    with pytest.raises(ConfigInvalid) as refused:
        resolve({}, {f"HEADGATE_{name.upper()}": text}, {}, FILE)
    assert refused.value.param == name
    assert f"HEADGATE_{name.upper()}" in refused.value.message


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hunter2@db.example/name",
        "postgresql://me:hunter2@@db.example/name",
        "postgresql://me@db.example/name?password=hunter2",
        "postgresql:///name?Password=hunter2",
        "mysql://me:hunter2@db.example/name",
        "me:hunter2@db.example",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(address: str):
    with pytest.raises(ConfigInvalid) as refused:
        resolve({}, {"HEADGATE_STORE_URL": address}, {}, FILE)
    assert refused.value.param == "store_url"
    assert "hunter2" not in f"{refused.value.message} {refused.value.hint}"
    # A log of the error shows its cause as well.
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


def test_a_list_in_the_file_is_read_as_a_list(tmp_path: Path):
    content = b"""
allowed_hosts = ["box.lan", "NAS.lan"]
allowed_origins = ["https://a.example"]
trusted_proxies = []
gateway_clients = ["Agent-one", "b"]
"""
    (tmp_path / "config.toml").write_bytes(content)
    found = resolve({}, {}, read_config(tmp_path / "config.toml", required=True), FILE).settings
    assert found.allowed_hosts == {"box.lan", "nas.lan"}
    assert found.allowed_origins == {"https://a.example"}
    assert found.trusted_proxies == frozenset()
    assert found.gateway_clients == {"Agent-one", "b"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("host", "port", "home") for value in (["127.0.0.1"], {"a": 1}, [])),
        *(("allowed_hosts", value) for value in (["a b"], ["a,b"], [1], [["a"]], [""], {"a": 1})),
    ],
)
def test_a_list_or_a_table_that_a_setting_does_not_take_is_refused(name: str, value: object):
    with pytest.raises(ConfigInvalid) as refused:
        resolve({}, {}, {name: value}, FILE)
    assert refused.value.param == name


def test_a_file_that_sets_something_unknown_is_refused():
    with pytest.raises(ConfigInvalid) as refused:
        resolve({}, {}, {"prot": 1}, FILE)
    assert refused.value.param == "prot"
    assert "port" in refused.value.hint


def test_variables_that_look_like_ours_but_set_nothing_are_reported():
    assert resolve({}, {"HEADGATE_PROT": "1", "HEADGATE_CONFIG": "x"}, {}, FILE).unknown_variables == (
        "HEADGATE_PROT",
    )


def test_a_file_that_was_not_named_may_be_missing(tmp_path: Path):
    assert read_config(tmp_path / "none.toml", required=False) == {}
    with pytest.raises(ConfigInvalid):
        read_config(tmp_path / "none.toml", required=True)


@pytest.mark.parametrize("content", [b"port = ", b"\xff\xfe", b"[["])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(ConfigInvalid):
        read_config(tmp_path / "config.toml", required=False)


def test_the_environment_can_name_the_file():
    assert config_path({"HEADGATE_CONFIG": "/x/y.toml"}) == Path("/x/y.toml")
    assert config_path({}).name == "config.toml"
