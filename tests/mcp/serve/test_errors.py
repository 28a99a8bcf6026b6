"""Every error that a tool can give names an argument that the tool has, and a remedy that exists."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from headgate import errors
from headgate.errors import HeadgateError
from headgate.mcp.serve.failures import CHOICES_BYTES, FAILURE_BYTES, failed
from headgate.mcp.serve.results import Outcome
from headgate.mcp.serve.tools import TOOLS
from headgate.model.grant import StreamGrant
from tests.mcp.serve.prepared import CountingPort, run
from tests.mcp.serve.test_arguments import WRONG
from tests.mcp.serve.test_world import in_world, mail
from tests.mcp.serve.world import World

INPUTS: dict[str, dict[str, Any]] = {tool["name"]: tool["inputSchema"]["properties"] for tool in TOOLS}
ARGUMENTS = {name for inputs in INPUTS.values() for name in inputs}
#: Members of answers that a hint may name.
MEMBERS = {
    *("next_cursor", "next_changes_since", "available_connections", "retry_after_seconds", "count_distinct"),
    *("sent_at", "is_read", "fetch_id"),
}
#: Names that consist of several words, which no sentence has by chance.
NAMES = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


def faults(tool: str, error: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """Give what a model cannot act on in an error of a tool."""
    hint, param = error.get("hint", ""), error.get("param")
    words = set(re.findall(r"[a-z_]+", hint.casefold()))
    return [
        *([f"no argument {param}"] if param not in {None, *INPUTS[tool], *given} else []),
        *(
            f"nothing is called {name}"
            for name in NAMES.findall(hint)
            if name not in ARGUMENTS | {*INPUTS, *MEMBERS}
        ),
        *(["no argument and no tool is named"] if not words & {*INPUTS, *INPUTS[tool]} else []),
    ]


@pytest.mark.parametrize(("tool", "arguments", "code", "param"), WRONG)
def test_a_refusal_of_arguments_names_what_exists(
    tool: str, arguments: dict[str, Any], code: str, param: str | None
):
    del code, param
    error = run(CountingPort(), tool, **arguments).structured["error"]
    assert faults(tool, error, arguments) == []


_LISTED = ("query_records", "search")
_ONE = ("fetch", "read_record_field")
_NUMBERS = ("query_records", "aggregate", "search")
#: What another call mends, and the tools that can be answered with it, raised with the hint of its class.
MENDED: dict[type[HeadgateError], tuple[str, ...]] = {
    errors.InvalidRequest: tuple(INPUTS),
    errors.InvalidArgument: ("query_records",),
    errors.InvalidCursor: ("schema", *_NUMBERS, "read_record_field"),
    errors.InvalidSort: ("query_records",),
    errors.InvalidExpand: ("query_records", "fetch"),
    errors.InvalidFilter: _NUMBERS,
    errors.UnknownField: (*_NUMBERS, *_ONE),
    errors.InvalidFieldPath: ("read_record_field",),
    errors.InvalidWindow: ("read_record_field",),
    errors.InvalidFieldWindowSelector: ("read_record_field",),
    errors.InvalidResultId: _ONE,
    errors.ConflictingConnectionId: _ONE,
    errors.StreamNotAllowed: tuple(INPUTS),
    errors.FieldNotGranted: (*_NUMBERS, *_ONE),
    errors.InsufficientScope: ("query_records", "fetch"),
    errors.TimeRangeExceeded: _NUMBERS,
    errors.NotFound: _ONE,
    errors.Unsupported: ("search",),
    errors.ModelUnavailable: ("search",),
    errors.ConnectionNotFound: tuple(INPUTS),
    errors.FieldNotFound: ("read_record_field",),
    errors.FieldNotText: ("read_record_field",),
    errors.QueryNotFound: ("read_record_field",),
    errors.AmbiguousConnection: (*_NUMBERS, *_ONE),
    errors.AmbiguousSchemaDetail: ("schema",),
    errors.CursorExpired: (*_LISTED, "read_record_field"),
    errors.ResourceLimit: (*_NUMBERS, "fetch"),
    errors.QueryTimeout: _NUMBERS,
}
#: What no other call mends: its hint says who can, or when to call again.
WAITED_FOR: tuple[type[HeadgateError], ...] = (
    *(errors.AuthenticationFailed, errors.PermissionRefused, errors.OwnerCredentialRefused),
    *(errors.GrantExpired, errors.GrantRevoked, errors.GrantInvalid, errors.GrantConsumed),
    *(errors.PackageRevoked, errors.RateLimited, errors.ServerFault, errors.ToolHandlerFailed),
    *(errors.Overloaded, errors.ResourceServerUnreachable, errors.AnswerNotUnderstood),
    *(errors.StorageUnusable, errors.StorageReadOnly, errors.StorageFull, errors.IntegrityBroken),
)
#: Those that the operator mends: the hint says that what to run is for the operator.
OPERATORS = (errors.StorageUnusable, errors.StorageReadOnly, errors.StorageFull, errors.IntegrityBroken)
#: What no tool is answered with: it belongs to other addresses, to resources, to imports or to a terminal, or is a
#: class that is only raised as one of those below it.
ELSEWHERE: tuple[type[HeadgateError], ...] = (
    *(errors.HeadgateError, errors.InvalidResourceUri, errors.SealBroken, errors.InvalidRecord),
    *(errors.InvalidRecordIdentity, errors.InvalidDeclaration, errors.UnsupportedVersion),
    *(errors.InvalidClient, errors.InvalidClientMetadata, errors.InvalidAuthorizationDetails),
    *(errors.InvalidGrant, errors.ContextRejected, errors.BlobNotFound, errors.StreamNotDeclared),
    *(errors.MethodRefused, errors.BodyCutShort, errors.Conflict, errors.IdempotencyConflict),
    *(errors.MisdirectedRequest, errors.SlowDown, errors.LogUnverifiable, errors.ConfigInvalid),
    errors.RemoteRefused,
)


def test_every_error_there_is_is_looked_at_here():
    known = [*MENDED, *WAITED_FOR, *ELSEWHERE]
    assert len(known) == len(set(known))
    assert set(known) == {one for one in errors.all_errors() if one.__module__ == errors.__name__}


def rendered(kind: type[HeadgateError], tool: str) -> dict[str, Any]:
    outcome = failed(kind(), tool)
    assert json.loads(outcome.text) == outcome.structured
    return outcome.structured["error"]


@pytest.mark.parametrize(("kind", "tool"), [(kind, tool) for kind, tools in MENDED.items() for tool in tools])
def test_a_failure_of_the_resource_server_names_what_exists(kind: type[HeadgateError], tool: str):
    assert faults(tool, rendered(kind, tool), {}) == []


@pytest.mark.parametrize("kind", WAITED_FOR)
def test_a_failure_that_no_call_mends_says_who_can_or_when(kind: type[HeadgateError]):
    hint = rendered(kind, "search")["hint"]
    assert re.search(r"\b(owner|operator|again|token|Wait)\b", hint), hint
    assert ("operator of the server" in hint) == (kind in OPERATORS), hint
    assert [name for name in NAMES.findall(hint) if name not in ARGUMENTS | {*INPUTS, *MEMBERS}] == []


def test_the_refusal_of_another_server_is_shown_in_bounds():
    many = [{"connection_id": f"cin_{n}", "display_name": "名" * 60} for n in range(9_000)]
    facts = {"code": "c" * 9_000, "type": "t" * 9_000, "message": "m" * 90_000, "hint": "h" * 90_000}
    facts |= {"param": "p" * 90_000, "available_connections": many, "more": "x" * 200_000, "retry_with": "q"}
    outcome = failed(errors.RemoteRefused(409, facts), "search")
    assert len(outcome.text.encode()) + len(msgspec.json.encode(outcome.structured)) <= CHOICES_BYTES
    error = outcome.structured["error"]
    assert error["retry_with"] == "q"
    assert "more" not in error
    ids = [entry["connection_id"] for entry in error["available_connections"]]
    assert ids == [f"cin_{n}" for n in range(len(ids))] != []
    few = {"code": "ambiguous_connection", "available_connections": many[:4]}
    small = failed(errors.RemoteRefused(409, few), "search").structured["error"]
    assert {key: small[key] for key in few} == few
    for odd in ("x", [1, {"connection_id": 2}, {"connection_id": "c" * 9_000}], {"a": 1}):
        hostile = failed(errors.RemoteRefused(409, {**few, "available_connections": odd}), "search")
        assert "available_connections" not in hostile.structured["error"]
        assert len(hostile.text.encode()) <= FAILURE_BYTES


@pytest.mark.parametrize(
    ("tool", "param", "shown"),
    [
        ("read_record_field", "fields", "field_path"),
        ("read_record_field", "field", "field_path"),
        ("search", "stream", "streams"),
        ("fetch", "stream", "id"),
        ("fetch", "record_id", "id"),
        ("query_records", "stream", "stream"),
    ],
)
def test_a_parameter_of_rest_has_the_name_that_the_tool_has_for_it(tool: str, param: str, shown: str):
    error = failed(errors.InvalidRequest("No.", param=param), tool).structured["error"]
    assert error["param"] == shown
    assert INPUTS[tool][shown]["description"].startswith(error["hint"].partition(f"{shown}: ")[2].rstrip("…"))


READS: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "query_records",
        {"changes_since": "2026-01-01", "connection_id": "Home mail"},
        "changes_since",
        "beginning",
    ),
    ("query_records", {"changes_since": "beginning"}, "changes_since", "connection_id"),
    ("query_records", {"filter": {"attachment": "x"}}, "filter", "sender"),
    ("query_records", {"filter": {"sender": {"gte": "a"}}}, "filter", "sent_at"),
    ("query_records", {"filter": {"size": {"gt": 5}}}, "filter", "gte, lt"),
    ("query_records", {"view": "nope"}, "view", "view"),
    ("query_records", {"cursor": "pg1.x"}, "cursor", "cursor"),
    ("query_records", {"fields": ["nope"]}, "fields", "schema"),
    ("query_records", {"connection_id": "cin_none"}, "connection_id", "schema"),
    ("query_records", {"stream": "nope"}, "stream", "schema"),
    ("query_records", {"expand": ["nope"]}, "expand", "schema"),
    ("query_records", {"sort": "subject"}, "sort", "sort"),
    ("aggregate", {"metric": "sum"}, "field", "field"),
    ("aggregate", {"metric": "sum", "field": "subject"}, "field", "size"),
    ("aggregate", {"metric": "count", "group_by": "body"}, "group_by", "sender"),
    ("aggregate", {"metric": "count", "group_by_time": "sent_at"}, "granularity", "granularity"),
    ("aggregate", {"metric": "count", "stream": "attachments"}, "metric", "query_records"),
    ("search", {"q": "x", "streams": ["nope"]}, "streams", "schema"),
    ("search", {"q": "!!"}, "query", "query"),
    ("aggregate", {"metric": "count", "query": "!!"}, "query", "query"),
    ("fetch", {"id": "nope:1"}, "id", "schema"),
    ("read_record_field", {"id": "Home mail/messages:m1", "field_path": "nope"}, "field_path", "schema"),
]


@pytest.mark.parametrize(("tool", "given", "param", "named"), READS)
def test_the_refusal_of_a_read_names_what_to_do(tool: str, given: dict[str, Any], param: str, named: str):
    async def work(w: World) -> None:
        def known(text: Any) -> Any:
            for name, connection in w.connections.items():
                text = text.replace(name, connection) if isinstance(text, str) else text
            return text

        ids = tuple(w.connections[name] for name in ("Home mail", "Work mail"))
        granted = mail(w).grants[0].streams
        attachments = StreamGrant("attachments", ids, ("id", "message_id", "name", "file"))
        access = w.access(w.grant("Home mail", "Work mail", streams=[*granted, attachments]))
        arguments = {name: known(value) for name, value in given.items()}
        if tool in {"query_records", "aggregate"}:
            arguments.setdefault("stream", "messages")
        answer = await w.call(access, tool, **arguments)
        assert answer.is_error, answer.text
        error = answer.structured["error"]
        assert error["param"] == param, error
        assert named in f"{error['message']} {error['hint']}", error
        assert faults(tool, error, arguments) == [], error

    in_world(work)


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("search", {"text": "x"}, "Use query "),
        ("search", {"q": "x", "stream": "messages"}, "Use streams "),
        ("query_records", {"streams": ["m"]}, "Use stream "),
        ("query_records", {"stream": "m", "where": {}}, "Use filter "),
        ("query_records", {"stream": "m", "connector_instance_id": "c"}, "Use connection_id "),
        ("fetch", {"record_id": "m1"}, "Use id "),
        ("fetch", {"id": "m:1", "field": "a"}, "Use fields "),
        ("schema", {"xyzzy": 1}, "detail, stream, connection_id"),
        ("aggregate", {"stream": "m", "metric": "median"}, "count, sum, min, max, count_distinct"),
        ("aggregate", {"stream": "m", "metric": "count", "granularity": "eon"}, "month"),
        ("query_records", {"stream": "m", "order": "up"}, "asc, desc"),
        ("schema", {"detail": "huge"}, "compact, full"),
        ("search", {"q": "x", "mode": "fuzzy"}, "lexical"),
    ],
)
def test_a_wrong_name_or_value_is_answered_with_the_right_one(
    tool: str, arguments: dict[str, Any], named: str
):
    error = run(CountingPort(), tool, **arguments).structured["error"]
    assert named in error["hint"], error


def test_an_unknown_argument_is_repeated_up_to_64_characters():
    outcome = run(CountingPort(), "schema", **{"x" * 100_000: 1})
    assert outcome.structured["error"]["param"] == "x" * 64
    assert len(outcome.text) < 1000


#: Names as long and as odd as a caller can send them.
HOSTILE = ("x" * 1_000, "名" * 1_000, "\x00\x1b\u202e" * 300, '"\\' * 500, "🙂" * 999, "a b\n" * 200, "")
#: Every place of every tool that takes a name, a value or a token.
PLACES: list[tuple[str, Callable[[str], dict[str, Any]]]] = [
    ("schema", lambda odd: {odd: 1}),
    ("schema", lambda odd: {"detail": odd}),
    ("schema", lambda odd: {"cursor": odd}),
    ("query_records", lambda odd: {"stream": odd}),
    ("query_records", lambda odd: {"stream": "messages", "connection_id": odd}),
    ("query_records", lambda odd: {"stream": "messages", "connector_key": odd}),
    ("query_records", lambda odd: {"stream": "messages", "fields": [odd]}),
    ("query_records", lambda odd: {"stream": "messages", "filter": {odd: "x"}}),
    ("query_records", lambda odd: {"stream": "messages", "filter": {odd: {"gte": odd}}}),
    ("query_records", lambda odd: {"stream": "messages", "filter": {"sent_at": {odd: 1}}}),
    ("query_records", lambda odd: {"stream": "messages", "filter": {"sent_at": {"gte": odd}}}),
    ("query_records", lambda odd: {"stream": "messages", "sort": odd}),
    ("query_records", lambda odd: {"stream": "messages", "order": odd}),
    ("query_records", lambda odd: {"stream": "messages", "expand": [odd]}),
    ("query_records", lambda odd: {"stream": "messages", "expand": [], "expand_limit": {odd: 1}}),
    ("query_records", lambda odd: {"stream": "messages", "view": odd}),
    ("query_records", lambda odd: {"stream": "messages", "cursor": odd}),
    ("query_records", lambda odd: {"stream": "messages", "changes_since": odd}),
    ("aggregate", lambda odd: {"stream": odd, "metric": "count"}),
    ("aggregate", lambda odd: {"stream": "messages", "metric": odd}),
    ("aggregate", lambda odd: {"stream": "messages", "metric": "sum", "field": odd}),
    ("aggregate", lambda odd: {"stream": "messages", "metric": "count", "group_by": odd}),
    ("aggregate", lambda odd: {"stream": "messages", "metric": "count", "q": "a", "in": [odd]}),
    (
        "aggregate",
        lambda odd: {
            "stream": "messages",
            "metric": "count",
            "group_by_time": "sent_at",
            "granularity": "day",
            "time_zone": odd,
        },
    ),
    ("search", lambda odd: {"q": odd, "query": odd}),
    ("search", lambda odd: {"q": "a", "streams": [odd]}),
    ("search", lambda odd: {"q": "a", "connection_id": odd}),
    ("search", lambda odd: {"q": "a", "connector_key": odd}),
    ("search", lambda odd: {"q": "a", "in": [odd]}),
    ("search", lambda odd: {"q": "a", "mode": odd}),
    ("search", lambda odd: {"q": "a", "streams": ["messages"], "filter": {odd: "x"}}),
    ("fetch", lambda odd: {"id": odd}),
    ("fetch", lambda odd: {"id": f"messages:{odd}"}),
    ("fetch", lambda odd: {"id": "messages:m00001", "connection_id": odd}),
    ("fetch", lambda odd: {"id": "messages:m00001", "fields": [odd]}),
    ("read_record_field", lambda odd: {"id": odd, "field_path": "body"}),
    ("read_record_field", lambda odd: {"id": "a/messages:m1", "field_path": odd}),
]


def assert_short(outcome: Outcome, given: Any) -> None:
    sizes = [len(outcome.text.encode()), len(msgspec.json.encode(outcome.structured))]
    if "available_connections" in outcome.structured["error"]:
        assert sum(sizes) <= CHOICES_BYTES, (given, sizes)
    else:
        assert max(sizes) <= FAILURE_BYTES, (given, sizes, outcome.text)
    error = outcome.structured["error"]
    assert error["code"], given
    assert error["message"], given


def test_every_error_of_every_tool_is_short_whatever_names_are_sent():
    async def work(w: World) -> None:
        access = w.access(w.grant("Home mail", "Work mail"))
        refusals = 0
        for tool, arguments in PLACES:
            for odd in HOSTILE:
                outcome = await w.call(access, tool, **arguments(odd))
                if outcome.is_error:
                    refusals += 1
                    assert_short(outcome, (tool, arguments("…"), odd[:9]))
        assert refusals > len(PLACES) * len(HOSTILE) * 3 // 4

    in_world(work)


@given(
    kind=st.sampled_from([*MENDED, *WAITED_FOR]),
    tool=st.sampled_from([*INPUTS]),
    texts=st.tuples(*[st.text(st.characters(exclude_categories=["Cs"]), max_size=1_200)] * 3),
)
def test_an_error_with_any_texts_is_short(kind: type[HeadgateError], tool: str, texts: tuple[str, str, str]):
    message, hint, param = texts
    error = kind(message, hint=hint, param=param or None, data={"request_id": f"req_{param}"})
    assert_short(failed(error, tool), texts)


@pytest.mark.requirement("S2-73", "S2-74")
@pytest.mark.parametrize("label", ["Home mail", "名" * 60, "x" * 200])
@pytest.mark.parametrize(
    "connection_id",
    ["home-mail-{}", "cin_0123456789abcdef012345{:02}", "a-name-of-forty-characters-as-long-as-{:02}"],
)
@pytest.mark.parametrize("count", [2, 12])
def test_the_connections_to_choose_from_fit_both_channels_together(
    count: int, connection_id: str, label: str
):
    entries = [
        {
            "connection_id": connection_id.format(n),
            "connector_key": "mail",
            "stream": "messages",
            "display_name": label,
            "grant_id": f"grt_0123456789abcd{n:02}",
        }
        for n in range(count)
    ]
    more = {"available_connection_count": 40, "available_connections_truncated": True}
    data = {"retry_with": "connection_id", "available_connections": entries}
    data |= {**more, "available_connections_omitted": 40 - count} if count == 12 else {}
    error = errors.AmbiguousConnection(
        "40 connections fit; choose one with connection_id.", param="connection_id", data=data
    )
    outcome = failed(error, "query_records", "req_0123456789abcdef")
    assert_short(outcome, (count, connection_id, label))
    shown = outcome.structured["error"]["available_connections"]
    assert len(shown) >= min(count, 10)
    assert all({"connection_id", "connector_key", "grant_id"} <= set(entry) for entry in shown)
    assert all(entry["connection_id"] in outcome.text for entry in shown)
    omitted = outcome.structured["error"].get("available_connections_omitted", 0)
    assert len(shown) + omitted == (40 if count == 12 else 2)
