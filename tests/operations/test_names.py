"""Every spelling of an id finds the same operation."""

import pytest
from hypothesis import given, strategies as st

from headgate.errors import RegistrationInvalid
from headgate.operations.spec import check_namespace, operation_id, parse_operation_id
from tests.operations.parts import operation, registry


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("ns/op", ("ns", "op")),
        ("/ns/op", ("ns", "op")),
        ("ns.op", ("ns", "op")),
        ("ns/op.with.dots", ("ns", "op.with.dots")),
        ("ns.op.with.dots", ("ns", "op.with.dots")),
        ("ns/a/b", ("ns", "a/b")),
        ("ns.a/b", ("ns.a", "b")),
        ("op", ("op", "")),
        ("", ("", "")),
    ],
)
def test_an_id_is_split_at_its_first_separator(text, key):
    assert parse_operation_id(text) == key


@given(st.text(min_size=1).filter(lambda text: not {".", "/"} & set(text)), st.text(min_size=1))
def test_a_canonical_id_is_read_back(namespace, name):
    if not name.startswith(namespace + "/"):
        assert parse_operation_id(operation_id(namespace, name)) == (namespace, name)


@pytest.mark.parametrize("namespace", ["", " ns", "a.b", "a/b"])
def test_a_namespace_holds_no_separator(namespace):
    with pytest.raises(RegistrationInvalid):
        check_namespace(namespace)


@pytest.mark.requirement("S0-08")
def test_an_operation_is_found_with_and_without_the_prefix_in_its_name():
    bare, prefixed = operation(name="op"), operation(name="ns/op")
    assert (bare.id, prefixed.id) == ("ns/op", "ns/op")
    for registration in (bare, prefixed):
        held = registry(registration)
        for spelling in ("ns/op", "/ns/op", "ns.op"):
            assert held.get(spelling) is registration
    assert prefixed.name == "ns/op"
    assert prefixed.local_name == "op"
