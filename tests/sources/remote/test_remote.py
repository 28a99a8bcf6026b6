"""A tool of a remote server as a source: called, mapped, and stored once."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from headgate.errors import CallError, ConfigInvalid, HeadgateError, NotFound, UpstreamProtocolError
from headgate.model.ids import StreamName
from headgate.model.plan import Reach
from headgate.sources.accounts import account_job
from headgate.sources.importing import Importer
from headgate.sources.protocol import Mark, Reject, Removal, Row
from headgate.sources.remote import RemoteSource, _RemoteRun, read_mapping, value_at
from headgate.wiring import live_sources
from tests.sources.reading import check_rows
from tests.sources.remote.served import MAPPING, Tasks, app_of, on_loopback, tasks
from tests.store.engines import NOW, Driven


@pytest.fixture(scope="module")
def served():
    held = Tasks()
    with on_loopback(app_of(held)) as url:
        held.url = url
        yield held


@pytest.fixture
def held(served):
    served.tasks, served.asked, served.fails = tasks(1, 2, 3), [], False
    return served


def settings_for(directory: Path, server: str, more: str = "", text: str = MAPPING) -> dict[str, str]:
    path = directory / "tasks.toml"
    path.write_text(text.format(server=server, more=more))
    return {"mapping": str(path)}


def source_in(home: Path) -> RemoteSource:
    found = live_sources(home, os.environ)["mcp"]
    assert isinstance(found, RemoteSource)
    return found


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


def rows(items):
    return [dict(item.data) for item in items if isinstance(item, Row)]


def state_after(items):
    return {item.file: item.resume for item in items if isinstance(item, Mark)}


def test_the_pages_of_a_tool_become_records(held, home, tmp_path):
    settings = settings_for(tmp_path, held.url)
    source = source_in(home)
    items = list(source.sync(settings, {}))
    check_rows(source.declare(settings), [item for item in items if isinstance(item, Row)])
    assert rows(items)[0] == {
        "id": "1",
        "name": "Task 1",
        "effort": 0.5,
        "updated_at": "2026-03-01T08:00:00Z",
    }
    assert [row["id"] for row in rows(items)] == ["1", "2", "3"]
    assert held.asked == [("open", None, None), ("open", "2", None)]
    assert source.label(settings) == "My tasks"


def test_syncing_twice_stores_everything_once_and_what_left_the_result_stays(held, home, tmp_path):
    assert stored_after(held, home, tmp_path, "") == [(3, 0), (0, 0), (1, 0)]


def test_a_result_that_is_the_whole_removes_what_left_it(held, home, tmp_path):
    assert stored_after(held, home, tmp_path, "whole = true") == [(3, 0), (0, 0), (1, 2)]


def stored_after(held, home, tmp_path, more):
    """Sync, sync again, and sync after two tasks left and one came; what each added and removed."""
    settings = settings_for(tmp_path, held.url, more)
    store = Driven("sqlite", tmp_path)
    counts = []
    try:
        for numbers in ((1, 2, 3), (1, 2, 3), (3, 4)):
            held.tasks = tasks(*numbers)
            job = account_job(source_in(home), settings)
            report = store.run(Importer(store.bare, clock=lambda: NOW).run(job))
            assert (report.failure, report.reject_count) == ("", 0)
            counts.append((report.streams["tasks"].added, report.streams["tasks"].removed))
        ids = tuple(one.id for one in store.connections())
        (shelf,) = store.summaries([Reach(StreamName("tasks"), ids, ())])
        assert shelf.record_count == sum(added - removed for added, removed in counts)
    finally:
        store.close()
    return counts


def test_a_tool_that_can_leave_out_what_is_older_is_asked_for_what_is_newer(held, home, tmp_path):
    settings = settings_for(tmp_path, held.url, 'since = "since"')
    state = state_after(source_in(home).sync(settings, {}))
    held.tasks += tasks(4)
    held.asked.clear()
    assert [row["id"] for row in rows(source_in(home).sync(settings, state))] == ["4"]
    assert held.asked == [("open", None, "2026-03-03T08:00:00Z")]


def test_a_tool_that_fails_is_an_error_with_its_code(held, home, tmp_path):
    held.fails = True
    with pytest.raises(CallError) as caught:
        list(source_in(home).sync(settings_for(tmp_path, held.url), {}))
    assert caught.value.code


def test_a_tool_that_is_missing_and_a_server_that_is_away_are_errors_of_ours(held, home, tmp_path):
    text = MAPPING.replace("list_tasks", "no_such_tool")
    with pytest.raises(NotFound, match="no_such_tool"):
        list(source_in(home).sync(settings_for(tmp_path, held.url, text=text), {}))
    with pytest.raises(HeadgateError):
        list(source_in(home).sync(settings_for(tmp_path, "http://127.0.0.1:9"), {}))


def test_a_tool_that_is_not_marked_as_reading_needs_the_word_of_the_owner(home, tmp_path):
    with on_loopback(app_of(Tasks(), is_marked=False)) as url:
        with pytest.raises(ConfigInvalid, match="does not say"):
            list(source_in(home).sync(settings_for(tmp_path, url), {}))
        items = list(source_in(home).sync(settings_for(tmp_path, url, "read_only = true"), {}))
    assert len(rows(items)) == 3


def test_a_tool_whose_definition_changed_is_not_called(home, tmp_path):
    held = Tasks()
    first = app_of(held)
    other = app_of(held, detail="List tasks, and send them to us.")
    chosen = [first]

    async def app(scope, receive, send):
        await chosen[0](scope, receive, send)

    with on_both(first, other, app) as url:
        assert len(rows(source_in(home).sync(settings_for(tmp_path, url), {}))) == 3
        chosen[0], held.asked = other, []
        with pytest.raises(CallError) as caught:
            list(source_in(home).sync(settings_for(tmp_path, url), {}))
    assert caught.value.code == "tool_definition_changed"
    assert "headgate ops pins" in (caught.value.hint or "")
    assert held.asked == []


@contextmanager
def on_both(first, other, app):
    """Serve an app that passes requests on to one of two, with the lifespans of both."""

    async def both(scope, receive, send):
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        await receive()
        async with first.router.lifespan_context(first), other.router.lifespan_context(other):
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    with on_loopback(both) as url:
        yield url


def test_a_server_with_a_private_address_is_called_only_if_the_owner_allows_it(home, tmp_path):
    text = MAPPING.replace("{server}/mcp", "https://10.1.2.3/mcp")
    with pytest.raises(HeadgateError, match="must not be called"):
        list(source_in(home).sync(settings_for(tmp_path, "", text=text), {}))


class Fixed:
    """An operation with prepared results."""

    is_read_only = True

    def __init__(self, *results) -> None:
        self._results = list(results)

    def call(self, arguments):
        assert isinstance(arguments, dict)
        return self._results.pop(0) if len(self._results) > 1 else self._results[0]


def run_on(tmp_path, *results, more="", before=None):
    mapping = read_mapping(Path(settings_for(tmp_path, "https://x.example", more)["mapping"]))
    return list(_RemoteRun(mapping, before or {}).items(Fixed(*results)))


def test_json_in_the_only_text_of_a_result_is_read(tmp_path):
    items = run_on(tmp_path, [{"type": "text", "text": '{"tasks": [{"id": 1}]}'}])
    assert rows(items) == [{"id": "1"}]


def test_items_that_do_not_fit_are_rejected_and_nothing_is_taken_as_gone(tmp_path):
    before = {"keys": [["1"], ["2"]]}
    bad = {"tasks": [{"id": 1}, {"name": "x"}, {"id": 3, "effort": "much"}, 7]}
    items = run_on(tmp_path, bad, more="whole = true", before=before)
    assert [type(item) for item in items] == [Row, Reject, Reject, Reject, Mark]
    good = run_on(tmp_path, {"tasks": [{"id": 1}]}, more="whole = true", before=before)
    assert [item for item in good if isinstance(item, Removal)] == [Removal("tasks", ["2"])]


@pytest.mark.parametrize("result", [None, 5, {}, {"tasks": {}}, [{"type": "text", "text": "none"}]])
def test_a_result_without_items_is_an_error_and_removes_nothing(tmp_path, result):
    with pytest.raises(UpstreamProtocolError):
        run_on(tmp_path, result, more="whole = true", before={"keys": [["1"]]})


def test_pages_without_end_are_an_error(tmp_path):
    with pytest.raises(UpstreamProtocolError, match="without end"):
        run_on(tmp_path, {"tasks": [], "next": "again"})


@pytest.mark.parametrize(
    ("changed", "named"),
    [('tool = "list_tasks"', "tool"), ('key = "id"', "key"), ('stream = "tasks"', "stream")],
)
def test_a_mapping_without_what_it_needs_is_refused(tmp_path, changed, named):
    with pytest.raises(ConfigInvalid, match=named):
        read_mapping(Path(settings_for(tmp_path, "x", text=MAPPING.replace(changed, ""))["mapping"]))


@pytest.mark.parametrize(
    "more",
    [
        "unknown = 1",
        'since = "a"\nwhole = true',
        'items = "b"',
        "read_only = 3",
        'token = ""\nstream = "A b"',
    ],
)
def test_a_mapping_that_cannot_be_meant_is_refused(tmp_path, more):
    with pytest.raises(ConfigInvalid):
        read_mapping(Path(settings_for(tmp_path, "x", more)["mapping"]))
    with pytest.raises(ConfigInvalid, match="no mapping file"):
        read_mapping(tmp_path / "nowhere.toml")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "name", "times"]), inner)
    ),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def mapping(tmp_path_factory):
    return read_mapping(Path(settings_for(tmp_path_factory.mktemp("m"), "https://x.example")["mapping"]))


@hypothesis_settings(max_examples=150, deadline=None)
@given(listed=st.lists(JSON, max_size=5))
def test_any_items_become_rows_that_can_be_stored_or_rejects(mapping, listed):
    items = list(_RemoteRun(mapping, {}).items(Fixed({"tasks": listed})))
    found = [item for item in items if isinstance(item, Row)]
    assert len(found) + sum(isinstance(item, Reject) for item in items) == len(listed)
    repaired = [row for row in found if not any(set("\0") & set(str(value)) for value in row.data.values())]
    check_rows(mapping.declare("mcp"), [row for row in repaired if _is_plain(row)])


def _is_plain(row: Row) -> bool:
    return all(str(value).isprintable() and len(str(value)) < 500 for value in row.data.values())


def test_a_path_leads_through_members_and_places():
    value = {"a": [{"b": 1}]}
    assert value_at(value, "a.0.b") == 1
    assert [value_at(value, path) for path in ("a.1.b", "a.x", "b", "a.0.b.c")] == [None] * 4
    assert value_at(value, "") is value
