from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import jsonschema_rs
import pytest
from hypothesis import given, strategies as st

from headgate.errors import InvalidDeclaration
from headgate.model.declaration import Cardinality, FieldKind, LineFields, RangeOperator, Semantics
from headgate.schema.declare import read_declaration, refuse_unusable_schemas
from headgate.schema.document import DIALECT
from headgate.sources.calendar.source import EVENTS
from headgate.sources.chat import streams as chat
from headgate.sources.declaring import StreamSpec, declaration as make_declaration
from headgate.sources.history import health
from headgate.sources.mail import source as mail
from headgate.sources.money import ledger
from headgate.sources.notes import NOTE_STREAM
from tests.schema.declarations import declaration

Document = dict[str, Any]


def problems_of(document: Document) -> list[tuple[str, str]]:
    with pytest.raises(InvalidDeclaration) as refused:
        read_declaration(document)
    return [
        (problem["code"].removeprefix("source.declaration."), problem["pointer"])
        for problem in refused.value.data["problems"]
    ]


def test_a_declaration_is_read_whole():
    source = read_declaration(declaration())
    messages = source.streams["messages"]  # type: ignore[index]  # a test may name a stream
    assert source.source_id == "https://registry.example/connectors/mail"
    assert messages.semantics is Semantics.MUTABLE_STATE
    assert messages.primary_key == ("id",)
    assert messages.relationships[0].cardinality is Cardinality.HAS_MANY
    assert messages.query.expand[0].max_limit == 5
    assert messages.query.range_filters == {
        "sent_at": (RangeOperator.GTE, RangeOperator.LT),
        "size": (RangeOperator.GT,),
    }
    assert messages.query.aggregations is not None
    assert messages.query.aggregations.group_by == ("sender", "is_read")
    assert source.presets[0].streams[0].view == "subjects"
    assert source.extensions == {"https://example.org/profile": {"kept": 1}}


def test_fields_know_how_their_values_compare():
    fields = read_declaration(declaration()).streams["messages"].fields  # type: ignore[index]  # the same
    assert {name: field.kind for name, field in fields.items()} == {
        "id": FieldKind.TEXT,
        "sender": FieldKind.TEXT,
        "subject": FieldKind.TEXT,
        "body": FieldKind.TEXT,
        "sent_at": FieldKind.DATE_TIME,
        "day": FieldKind.DATE,
        "size": FieldKind.INTEGER,
        "weight": FieldKind.NUMBER,
        "is_read": FieldKind.BOOLEAN,
        "headers": FieldKind.JSON,
        "anything": FieldKind.JSON,
    }
    assert [name for name, field in fields.items() if field.required] == ["id", "sent_at"]


def test_expansion_limits_have_defaults_that_never_cross():
    document = declaration()
    document["streams"][0]["query"]["expand"] = [{"name": "attachments", "max_limit": 4}]
    expansion = read_declaration(document).streams["messages"].query.expand[0]  # type: ignore[index]  # the same
    assert (expansion.default_limit, expansion.max_limit) == (4, 4)


def messages(document: Document) -> Document:
    return document["streams"][0]


def put(path: str, value: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        target: Any = document
        *parents, last = path.split("/")
        for part in parents:
            target = target[int(part)] if isinstance(target, list) else target[part]
        if isinstance(target, list):
            target.append(value)
        else:
            target[last] = value

    return change


VIEW = {"id": "subjects", "label": "Again", "fields": ["id"]}
RELATION = {"name": "attachments", "stream": "attachments", "foreign_key": "id", "cardinality": "has_one"}


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        (put("streams/-", messages(declaration())), "duplicate_stream_name", "/streams"),
        (
            put("selection_presets/-", {"id": "light", "streams": [{"name": "messages"}]}),
            "duplicate_preset_id",
            "",
        ),
        (put("selection_presets/0/streams/-", {"name": "messages"}), "duplicate_preset_stream_name", ""),
        (put("streams/0/views/-", VIEW), "duplicate_view_id", "/streams/0/views"),
        (
            put("streams/0/relationships/-", RELATION),
            "duplicate_relationship_name",
            "/streams/0/relationships",
        ),
        (put("streams/0/query/expand/-", {"name": "attachments"}), "duplicate_expand_name", ""),
        (put("streams/0/primary_key", ["nope"]), "unknown_schema_field", "/streams/0/primary_key/0"),
        (put("streams/0/cursor_field", "nope"), "unknown_schema_field", "/streams/0/cursor_field"),
        (put("streams/0/consent_time_field", "nope"), "unknown_schema_field", ""),
        (put("streams/0/line", {"who": ["sender", "nope"]}), "unknown_schema_field", "/streams/0/line/who/1"),
        (put("streams/0/line", {"amount": "body"}), "invalid_query_field_type", "/streams/0/line/amount"),
        (put("streams/0/line", {"time": "size"}), "invalid_query_field_type", "/streams/0/line/time"),
        (
            put("streams/0/line", {"who": ["sender", "body", "subject"]}),
            "invalid_shape",
            "/streams/0/line/who",
        ),
        (put("streams/0/line", {"note": "body"}), "invalid_shape", "/streams/0/line/note"),
        (put("streams/0/line", {"quoted": "size"}), "invalid_query_field_type", "/streams/0/line/quoted"),
        (put("streams/0/line", {"quoted": "nope"}), "unknown_schema_field", "/streams/0/line/quoted"),
        (put("streams/0/repeats", "nope"), "unknown_stream", "/streams/0/repeats"),
        (put("streams/0/repeats", "messages"), "invalid_repeats", "/streams/0/repeats"),
        (put("streams/0/views/0/fields/-", "nope"), "unknown_schema_field", "/streams/0/views/0/fields/2"),
        (put("streams/0/relationships/0/foreign_key", "nope"), "unknown_schema_field", ""),
        (put("streams/0/query/range_filters/nope", ["lt"]), "unknown_schema_field", ""),
        (put("streams/0/query/search/lexical_fields/-", "nope"), "unknown_schema_field", ""),
        (put("streams/0/query/aggregations/sum/-", "nope"), "unknown_schema_field", ""),
        (put("selection_presets/0/streams/1/fields", ["nope"]), "unknown_schema_field", ""),
        (
            put("streams/0/relationships/0/stream", "nope"),
            "unknown_stream",
            "/streams/0/relationships/0/stream",
        ),
        (put("selection_presets/0/streams/1/name", "nope"), "unknown_stream", ""),
        (put("selection_presets/0/streams/0/view", "nope"), "unknown_view", ""),
        (
            put("streams/0/query/expand/0/name", "nope"),
            "unknown_relationship",
            "/streams/0/query/expand/0/name",
        ),
        (
            put("streams/0/query/expand/0/default_limit", 6),
            "invalid_expand_limits",
            "/streams/0/query/expand/0",
        ),
        (put("streams/0/query/expand/0/default_limit", 0), "invalid_expand_limits", ""),
        (put("streams/0/times", "Mars/Olympus"), "invalid_times", "/streams/0/times"),
        (put("streams/0/times", "../etc/passwd"), "invalid_times", "/streams/0/times"),
        (put("streams/0/times", "as I like"), "invalid_times", "/streams/0/times"),
        (put("streams/0/query/range_filters/sender", ["lt"]), "invalid_query_field_type", ""),
        (put("streams/0/query/search/lexical_fields/-", "sent_at"), "invalid_query_field_type", ""),
        (put("streams/0/query/aggregations/sum/-", "sender"), "invalid_query_field_type", ""),
        (put("streams/0/query/aggregations/group_by/-", "headers"), "invalid_query_field_type", ""),
        (put("streams/0/query/aggregations/group_by_time/-", "size"), "invalid_query_field_type", ""),
        (
            put("streams/0/consent_time_field", "size"),
            "invalid_query_field_type",
            "/streams/0/consent_time_field",
        ),
        (put("streams/0/primary_key", ["headers"]), "invalid_query_field_type", ""),
        (
            put("streams/0/schema/properties/x", {"$ref": "https://example.org/x"}),
            "nonlocal_schema_reference",
            "",
        ),
        (
            put("streams/0/schema/properties/x", {"items": {"$dynamicRef": "o.json#x"}}),
            "nonlocal_schema_reference",
            "",
        ),
        (put("streams/0/schema/properties/x", {"type": "strange"}), "invalid_schema", ""),
        (put("streams/0/schema/$schema", "http://json-schema.org/draft-07/schema#"), "invalid_schema", ""),
        (put("streams/0/primary_key", ["id", "id"]), "invalid_shape", "/streams/0/primary_key"),
        (put("streams/0/primary_key", []), "invalid_shape", "/streams/0/primary_key"),
        (put("streams/0/name", "*"), "invalid_shape", "/streams/0/name"),
        (put("source/id", "not a uri"), "invalid_shape", "/source/id"),
        (put("source/kind", "guess"), "invalid_shape", "/source/kind"),
        (put("protocol_version", "0.2.0"), "invalid_shape", "/protocol_version"),
        (put("streams", []), "invalid_shape", "/streams"),
        (put("surprise", 1), "invalid_shape", "/surprise"),
        (
            put("selection_presets/0/streams/0/fields", ["id"]),
            "invalid_shape",
            "/selection_presets/0/streams/0",
        ),
    ],
)
def test_a_broken_rule_is_named_by_code_and_place(
    change: Callable[[Document], None], code: str, pointer: str
):
    document = declaration()
    change(document)
    found = problems_of(document)
    assert code in {found_code for found_code, _ in found}
    if pointer:
        assert (code, pointer) in found


def test_all_problems_are_reported_at_once():
    document = declaration()
    messages(document)["cursor_field"] = "nope"
    messages(document)["query"]["expand"][0]["name"] = "nope"
    assert len(problems_of(document)) == 2


def test_a_reference_loop_leads_nowhere_and_ends():
    document = declaration()
    messages(document)["schema"]["$defs"] = {
        "a": {"$ref": "#/$defs/b"},
        "b": {"$ref": "#/$defs/a"},
        "address": {},
    }
    messages(document)["schema"]["properties"]["x"] = {"$ref": "#/$defs/a"}
    messages(document)["query"]["aggregations"] = None
    assert read_declaration(document).streams["messages"].fields["x"].kind is FieldKind.JSON  # type: ignore[index]


def test_a_document_without_bottom_is_refused():
    document = declaration()
    nested: Document = {}
    document["extensions"]["https://example.org/deep"] = nested
    for _ in range(500):
        nested["x"] = nested = {}
    assert problems_of(document) == [("invalid_shape", "")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
def test_a_declaration_with_any_part_replaced_is_read_or_refused_with_problems(data: st.DataObject):
    document = declaration()
    target: Any = document
    while True:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(target[key], dict | list) and target[key] and data.draw(st.booleans()):
            target = target[key]
            continue
        target[key] = data.draw(JSON)
        break
    try:
        read_declaration(document)
    except InvalidDeclaration as error:
        problems = error.data["problems"]
    else:
        return
    assert problems
    assert all(problem["code"].startswith("source.declaration.") for problem in problems)


@pytest.mark.parametrize("dialect", ["http://127.0.0.1:9/dialect", "", "json-schema:///x", 5])
def test_a_foreign_dialect_is_refused_and_never_fetched(dialect: object):
    document = declaration()
    messages(document)["schema"]["$schema"] = dialect
    with patch.object(jsonschema_rs.meta, "validate", wraps=jsonschema_rs.meta.validate) as validate:
        assert problems_of(document) == [("invalid_schema", "/streams/0/schema/$schema")]
    assert all(call.args[0].get("$schema", DIALECT) == DIALECT for call in validate.call_args_list)


def test_the_line_of_a_stream_is_derived_where_the_declaration_does_not_name_it():
    derived = read_declaration(declaration()).streams["messages"].line  # type: ignore[index]  # as above
    assert derived == LineFields(time="sent_at", who=("sender",), title="subject", text="body")  # type: ignore[arg-type]  # as above
    document = declaration()
    messages(document)["line"] = {"time": "day", "amount": "weight", "text": "subject"}
    named = read_declaration(document).streams["messages"].line  # type: ignore[index]  # as above
    # A record is named once.
    assert named == LineFields(time="day", who=("sender",), amount="weight", text="subject")  # type: ignore[arg-type]  # as above


def test_quoted_text_is_the_field_that_is_named_or_usually_holds_it():
    document = declaration()
    properties = messages(document)["schema"]["properties"]

    def quoted() -> str | None:
        return read_declaration(document).streams["messages"].line.quoted  # type: ignore[index]  # as above

    assert quoted() is None
    properties["quoted_text"] = {"type": "string"}
    assert quoted() == "quoted_text"
    properties["quoted"] = {"type": "array"}
    assert quoted() == "quoted_text"
    properties["quoted"] = {"type": ["string", "null"]}
    assert quoted() == "quoted"
    messages(document)["line"] = {"quoted": "subject", "title": "sender"}
    assert quoted() == "subject"
    # What a record says itself is not quoted.
    messages(document)["line"] = {"text": "quoted"}
    assert quoted() is None


@pytest.mark.parametrize(
    ("stream", "line"),
    [
        (EVENTS, ("starts_at", "organizer", "title", "attendees", "location", "description")),
        (chat.MESSAGES, ("sent_at", "author", "channel", "text")),
        (mail._MESSAGES, ("sent_at", "from", "subject", "to", "body")),
        (ledger._TRANSACTIONS, ("booked_on", "counterparty", "amount", "currency", "description")),
        (NOTE_STREAM, ("modified_at", "author", "title", "text")),
        (health._MEASUREMENTS, ("started_at", "value", "unit", "kind")),
    ],
)
def test_the_lines_of_our_own_sources_say_what_a_record_is(stream: StreamSpec, line: tuple[str, ...]):
    document = make_declaration("own", "Own", [replace(stream, children=())])
    (read,) = read_declaration(document).streams.values()
    assert read.line.fields == line


def test_a_field_whose_name_no_record_can_hold_is_refused():
    document = declaration()
    messages(document)["schema"]["properties"]["a\0b"] = {"type": "string"}
    with pytest.raises(InvalidDeclaration) as refused:
        refuse_unusable_schemas(read_declaration(document))
    (problem,) = refused.value.data["problems"]
    assert problem["pointer"] == "/streams/0/schema/properties"


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$ref": "#/$defs/none"}, "/streams/0/schema/properties/anything"),
        ({"allOf": [{"$ref": "#/properties/anything"}]}, "/streams/0/schema/properties/anything"),
        ({"$id": "https://elsewhere.example/"}, "/streams/0/schema/properties/anything"),
        ({"pattern": "("}, "/streams/0/schema"),
    ],
)
def test_a_schema_that_cannot_be_run_is_refused_at_its_place(schema: Document, pointer: str):
    document = declaration()
    messages(document)["schema"]["properties"]["anything"] = schema
    source = read_declaration(document)
    with pytest.raises(InvalidDeclaration) as refused:
        refuse_unusable_schemas(source)
    (problem,) = refused.value.data["problems"]
    assert (problem["code"], problem["pointer"][: len(pointer)]) == (
        "source.declaration.invalid_schema",
        pointer,
    )


@pytest.mark.parametrize(
    "times", ["UTC", "Europe/London", "as written, with offsets", "as written, zone unknown"]
)
def test_a_stream_says_whose_clock_its_times_are_of(times: str):
    document = declaration()
    assert read_declaration(document).streams["messages"].times == "as written, zone unknown"
    document["streams"][0]["times"] = times
    assert read_declaration(document).streams["messages"].times == times


def test_a_stream_of_days_has_no_zone_whatever_is_declared():
    document = declaration()
    document["streams"][0]["schema"]["properties"]["sent_at"] = {"type": "string", "format": "date"}
    document["streams"][0]["times"] = "UTC"
    assert read_declaration(document).streams["messages"].times == "days, without a zone"


@pytest.mark.parametrize(
    ("spec", "times"),
    [
        (mail.MAIL_STREAMS[0], "UTC"),
        (EVENTS, "as written, with offsets"),
        (chat.MESSAGES, "as written, zone unknown"),
        (ledger.MONEY_STREAMS[1], "days, without a zone"),
        (health.HEALTH.streams[0], "as written, with offsets"),
    ],
)
def test_a_built_in_source_says_what_it_knows_of_its_times(spec: StreamSpec, times: str):
    document = make_declaration("test", "Test", [replace(spec, children=())])
    assert read_declaration(document).streams[spec.name].times == times
