"""A spec is pure data: frozen, apart from what it was made of, and the same after a trip through JSON."""

import dataclasses
import json

import pytest
from hypothesis import given, strategies as st

from headgate.errors import RegistrationInvalid
from headgate.operations.spec import (
    AccessControl,
    ErrorDefinition,
    OperationSpec,
    OperationType,
    OutputKind,
    Visibility,
)
from tests.operations.parts import spec
from tests.schema.test_value import JSON

NAMES = st.text("abcXYZ0_-", min_size=1, max_size=8)
SCHEMAS = st.just(True) | st.dictionaries(st.sampled_from(["title", "default", "x-own"]), JSON, max_size=3)
SPECS = st.builds(
    OperationSpec,
    NAMES,
    NAMES,
    op_type=st.sampled_from(OperationType),
    visibility=st.sampled_from(Visibility),
    title=st.none() | st.text(),
    description=st.text(),
    tags=st.lists(NAMES).map(tuple),
    input_schema=SCHEMAS,
    output_schema=SCHEMAS,
    error_schemas=st.lists(st.builds(ErrorDefinition, NAMES, st.text(), schema=SCHEMAS), max_size=2).map(
        tuple
    ),
    access_control=st.builds(AccessControl, required_scopes=st.lists(NAMES).map(tuple)),
    meta=st.dictionaries(NAMES, JSON, max_size=2),
)


@given(SPECS)
def test_a_spec_can_be_written_as_json(one):
    assert json.loads(json.dumps(one.to_dict())) == one.to_dict()


@pytest.mark.requirement("S0-12")
def test_changing_what_a_spec_was_made_of_does_not_change_it():
    source = {"type": "object", "properties": {"a": {"type": "string"}}}
    one = spec(input_schema=source, output_schema=source, meta={"mcp": source})
    same = json.loads(json.dumps(source))
    assert one.input_schema == same
    source["properties"]["a"]["type"] = "integer"
    one.to_dict()["input_schema"]["type"] = "array"
    assert one.input_schema == one.output_schema == one.meta["mcp"] == same


def test_a_spec_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec().visibility = Visibility.EXTERNAL


def test_an_operation_is_internal_unless_somebody_says_otherwise():
    assert OperationSpec("op", "ns", op_type=OperationType.QUERY).visibility is Visibility.INTERNAL


@pytest.mark.requirement("S4-B4")
@pytest.mark.requirement("S4-01")
@pytest.mark.parametrize("kind", [None, *OutputKind])
def test_an_output_schema_that_says_nothing_is_unknown_whatever_it_is_called(kind):
    for schema in ({}, True):
        assert spec(output_schema=schema, output_kind=kind).output_kind is OutputKind.UNKNOWN
    declared = spec(output_schema={"type": "object"}, output_kind=kind)
    assert declared.output_kind is (kind or OutputKind.DECLARED)


@pytest.mark.parametrize(("name", "namespace"), [("", "ns"), ("ns/", "ns"), ("op", ""), ("op", "a/b")])
def test_a_spec_needs_a_name_and_a_namespace(name, namespace):
    with pytest.raises(RegistrationInvalid):
        spec(name, namespace=namespace)
