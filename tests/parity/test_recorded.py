"""Our REST answers beside recorded answers of PDPP's reference server: same statuses, codes and shapes.

``recorded.json`` holds requests and the shapes of what came back, none of its text. Where ours differs, the
difference is a row of docs/explanation/pdpp.md: a difference without a row fails, and so does a row without
a difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import postgres
from tests.parity.recorded_world import Recorded, recorded
from tests.parity.shapes import shape_of
from tests.store.engines import ENGINES

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
SAMPLES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "recorded.json").read_text(encoding="utf-8")
)
STREAM = r"(\.connectors\[\]\.streams\[\])?"


@dataclass(frozen=True, slots=True)
class Difference:
    """One row of the page, the samples it is seen in, and what is seen there."""

    row: str
    samples: str
    seen: str


DIFFERENCES = (
    Difference(
        "filters, expansion and views of clients",
        "rest-records-filter-client-refused",
        r"status 400 invalid_request -> 200 None",
    ),
    Difference(
        "unknown and ungranted field of a client",
        "err-unknown-field",
        r"status 400 unknown_field -> 403 field_not_granted",
    ),
    Difference(
        "relation to an ungranted stream and one that does not exist",
        "err-expand-undeclared",
        r"status 400 invalid_request -> 403 insufficient_scope",
    ),
    Difference(
        "ungranted and unknown stream or connection of a client",
        "err-stream-not-found|err-unknown-connection",
        r"status 401 context\.\w+ -> (403 grant_stream_not_allowed|404 connection_not_found)",
    ),
    Difference(
        "stream metadata and schema",
        r"(err|rest)-(schema|stream)-.*",
        rf"[-+] {STREAM}\.(schema|field_capabilities|query|instance_ids|selection|semantics|primary_key"
        r"|consent_time_field|cursor_field|granted_connections|record_count|views|count|granted"
        r"|connector_key|connection_id|display_name|times)\b.*|\+ \.connectors\[\]\.(display_name|grant_id) string",
    ),
    Difference(
        "the compact schema",
        r"rest-schema-compact.*|err-stream-not-found-schema",
        r"- \.(bearer|links)\b.*|- \.connectors\[\]\.(source|object|connector_id|stream_count|grant_id)\b.*"
        r"|- \.connectors\[\]\.streams\[\]\.expand_capabilities\b.*"
        r"|\+ \.connectors\[\]\.streams\[\]\.(line|span|values)\b.*",
    ),
    Difference(
        "pages over several connections",
        "rest-records-.*fanin",
        r"[-+] (\.links\.next \w+|\.next_cursor string|\.meta\.warnings\[\].*)",
    ),
    Difference(
        "grouped counts and `count_distinct` over several connections",
        "rest-aggregate-.*",
        r"\+ \.other_count number|status 400 invalid_request -> 200 None",
    ),
    Difference(
        "values that a metric could not use",
        "rest-aggregate-.*",
        r"\+ \.(missing|unreadable)_value_count number",
    ),
    Difference("search score and order", "rest-search.*", r"- \.data\[\]\.score.*"),
    Difference("an unreadable limit", "err-limit-(text|zero)", r"\+ \.meta\.warnings\[\].*"),
    Difference(
        "`ambiguous_connection` entries",
        "err-.*ambiguous.*",
        r"\+ \.error\.available_connections\[\]\.(connector_key|stream) string",
    ),
    Difference(
        "owner reads of a stream that several connectors declare",
        "err-owner-no-connector",
        r"status 400 invalid_request -> 200 None",
    ),
    Difference(
        "field windows",
        ".*-field-window-.*",
        r"\+ (\.window\.(next|previous)_cursor|\.field\.(digest|size_chars)|\.connect\w+|\.display_name) \w+",
    ),
    Difference("refusals", "(err|rest)-.*", r"\+ \.error\.(hint|param) string"),
    Difference("an unknown token", "err-bad-bearer", "code context.active_false -> authentication_error"),
    Difference(
        "the connection of a record",
        ".*",
        r"- (\.data\[\])?\.connector_instance_id string|\+ \.data\[\]\.connector_key string",
    ),
    Difference("`record_json_bytes` of one record", "rest-record.*", r"- \.record_json_bytes number"),
    Difference("`next_changes_since`", "rest-records-changes-.*", r"- \.next_changes_since string"),
    Difference(
        "owner's ingest",
        ".*-ingest-.*",
        r"status 200 None -> 400 invalid_request|code ambiguous_connector_instance -> invalid_request",
    ),
    Difference("rows of `/v1/connectors`", "rest-(connectors|streams)", r"[-+] .*"),
    Difference(
        "`connector_count` and `stream_count` of a full schema",
        "rest-schema-full.*",
        r"- \.(connector|stream)_count number",
    ),
    Difference("a limit above the maximum", ".*-limit.*", r"\+ \.meta\.warnings\[\]\.detail.*"),
    Difference(
        "search hits", "rest-search.*", r"\+ \.data\[\]\.evidence_excerpts\[\]\.read\.offset_chars number"
    ),
    Difference(
        "how a query was understood",
        "(err|rest)-search.*",
        r"\+ (\.meta\.(understood.*|partial_count number)|\.data\[\]\.(match string|missing.*))",
    ),
    Difference(
        "semantic and hybrid search, event subscriptions",
        "rest-(search-(hybrid|semantic)|event-subscriptions)",
        r"[-+] .*|code None -> (not_found|unsupported)|status 200 None -> 404 (not_found|unsupported)",
    ),
)

#: Rows that one answer does not show, and the test that does.
PROVEN_ELSEWHERE = {
    "days and senders in a search": "test_a_resource_server_takes_words_alone_unless_it_is_asked_to_understand",
    "words in `aggregate`": "test_records_count_that_hold_all_the_words_over_all_connections",
    "fields of a search, a search without hits": "test_words_are_looked_for_in_the_named_fields_alone",
    "choosing connections": "test_the_connections_of_a_connector_in_several_grants_are_read_together",
    "package tokens at `/v1`": "test_a_package_reads_all_its_sources_over_rest_and_nothing_else",
    "sums, minima, maxima and distinct counts by group; `group_by` together with `group_by_time`": (
        "test_groups_have_a_value_beside_their_count_and_both_keys"
    ),
    "cursors": "test_a_cursor_of_another_grant_query_kind_or_year_does_not_open",
    "a page of changes": "test_a_request_looks_at_so_much_and_the_next_one_goes_on_from_there",
    "a record that leaves the grant's time or choice": "test_a_record_that_leaves_the_window_is_reported_once",
    "projection": "test_a_projection_is_exactly_the_fields_asked_for",
    "blobs": "test_a_file_comes_whole_or_in_part_or_only_its_size_and_hidden_ones_do_not_come",
}


async def seen_in(world: Recorded, sample: dict[str, Any]) -> list[str]:
    """Give the differences between our answer and the recorded one."""
    answer = await world.ask(sample)
    code = answer.code if answer.status >= 400 and answer.content else None
    if answer.status != sample["status"]:
        return [f"status {sample['status']} {sample['code']} -> {answer.status} {code}"]
    ours, theirs = shape_of(answer.body), set(sample["shape"])
    found = [] if code == sample["code"] else [f"code {sample['code']} -> {code}"]
    return found + [f"- {one}" for one in theirs - ours] + [f"+ {one}" for one in ours - theirs]


def rows() -> list[str]:
    text = (ROOT / "docs" / "explanation" / "pdpp.md").read_text(encoding="utf-8")
    return re.findall(r"^\| ((?!point |---).*?) \| ", text, re.MULTILINE)


def explained(name: str, seen: str) -> Iterator[str]:
    for one in DIFFERENCES:
        if re.fullmatch(one.samples, name) and re.fullmatch(one.seen, seen):
            yield one.row


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=list(ENGINES))
async def differences(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> list[tuple[str, str]]:
    place = tmp_path_factory.mktemp("recorded")
    flags: dict[str, str] = {}
    if request.param == "postgres":
        flags = {"store_url": postgres.database_url(), "store_home": str(place)}
    async with recorded(place, **flags) as world:
        return [(sample["name"], one) for sample in SAMPLES for one in await seen_in(world, sample)]


async def test_no_answer_differs_in_a_way_that_is_not_listed(differences: list[tuple[str, str]]):
    assert [pair for pair in differences if not list(explained(*pair))] == []


async def test_every_listed_difference_is_there(differences: list[tuple[str, str]]):
    real = {
        one
        for one in DIFFERENCES
        if any(re.fullmatch(one.samples, name) and re.fullmatch(one.seen, seen) for name, seen in differences)
    }
    assert set(DIFFERENCES) - real == set()


async def test_the_page_and_the_list_have_the_same_rows():
    assert sorted(rows()) == sorted({one.row for one in DIFFERENCES} | set(PROVEN_ELSEWHERE))


async def test_what_a_single_answer_does_not_show_has_another_test():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name in PROVEN_ELSEWHERE.values() if f"def {name}(" not in text] == []


async def test_the_samples_are_many_and_most_are_answered_alike(differences: list[tuple[str, str]]):
    """Otherwise the tests above would prove little."""
    assert len(SAMPLES) == 79
    changed = {name for name, seen in differences if seen.startswith(("status", "code"))}
    assert len(changed) <= 14
