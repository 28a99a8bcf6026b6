"""Access control: every row of the table, and who is judged."""

import pytest

from headgate.errors import CallError, RegistrationInvalid
from headgate.operations.spec import AccessControl, Identity, refusal
from tests.operations.parts import operation, registry

ANONYMOUS = None
ANNA = Identity(
    "anna", frozenset({"read", "write"}), {"doc:1": frozenset({"edit"}), "list": frozenset({"see"})}
)
STAR = Identity("star", frozenset(), {"doc:*": frozenset({"edit"})})


@pytest.mark.parametrize(
    ("access", "identity", "resource_id", "passes"),
    [
        (AccessControl(), ANONYMOUS, None, True),
        (AccessControl(), ANNA, None, True),
        (AccessControl(required_scopes=("read",)), ANONYMOUS, None, False),
        (AccessControl(required_scopes=("read", "write")), ANNA, None, True),
        (AccessControl(required_scopes=("read", "admin")), ANNA, None, False),
        (AccessControl(required_scopes_any=("admin", "write")), ANNA, None, True),
        (AccessControl(required_scopes_any=("admin", "root")), ANNA, None, False),
        (AccessControl(required_scopes_any=()), ANONYMOUS, None, True),
        (AccessControl(required_scopes=("read",), required_scopes_any=("root",)), ANNA, None, False),
        (AccessControl(resource_type="doc"), ANONYMOUS, None, False),
        (AccessControl(resource_type="doc"), ANNA, None, True),
        (AccessControl(resource_type="photo"), ANNA, None, False),
        (AccessControl(resource_type="doc", resource_action="edit"), ANNA, None, True),
        (AccessControl(resource_type="doc", resource_action="delete"), ANNA, None, False),
        (AccessControl(resource_type="doc", resource_action="edit"), ANNA, "1", True),
        (AccessControl(resource_type="doc", resource_action="edit"), ANNA, "2", False),
        (AccessControl(resource_type="doc", resource_action="edit"), ANNA, "", False),
        (AccessControl(resource_type="doc", resource_action="edit"), STAR, "2", True),
        (AccessControl(resource_type="list", resource_action="see"), ANNA, "9", True),
        (AccessControl(required_scopes=("read",), resource_type="doc"), STAR, None, False),
        (AccessControl(resource_type="do"), ANNA, None, False),
    ],
)
def test_the_table_of_access(access, identity, resource_id, passes):
    assert (refusal(access, identity, resource_id=resource_id) is None) is passes


def test_the_first_missing_scope_is_named():
    assert "'admin'" in refusal(AccessControl(required_scopes=("read", "admin", "root")), ANNA)


def test_an_identity_is_frozen_whatever_it_was_made_of():
    scopes, actions = {"read"}, ["edit"]
    made = Identity("a", scopes, {"doc": actions})
    scopes.add("admin")
    actions.append("delete")
    assert made == Identity("a", frozenset({"read"}), {"doc": frozenset({"edit"})})


def test_an_action_without_a_type_is_refused_when_it_is_written():
    with pytest.raises(ValueError, match="type") as refused:
        AccessControl(resource_action="edit")
    assert isinstance(refused.value, RegistrationInvalid)


pytestmark = pytest.mark.anyio


async def test_denial_comes_before_the_input_is_looked_at_and_before_the_handler():
    async def never(_value, _context):
        raise AssertionError("the handler ran")

    held = registry(
        operation(
            never, access_control=AccessControl(required_scopes=("root",)), input_schema={"type": "object"}
        )
    )
    for identity, status in ((ANONYMOUS, 401), (ANNA, 403)):
        with pytest.raises(CallError) as denied:
            await held.execute("ns/op", ["not", "an", "object"], identity=identity)
        assert (denied.value.code, denied.value.status) == ("FORBIDDEN", status)


async def test_only_the_resource_that_the_input_names_counts():
    access = AccessControl(resource_type="doc", resource_action="edit")
    held = registry(operation(access_control=access, resource_id_path="$.doc.id"))
    assert await held.call("ns/op", {"doc": {"id": "1"}}, identity=ANNA) == {"doc": {"id": "1"}}
    for value in ({"doc": {"id": "2"}}, {"doc": {}}, {"doc": 1}, {}, None, {"doc": {"id": None}}):
        with pytest.raises(CallError) as denied:
            await held.call("ns/op", value, identity=ANNA)
        assert denied.value.code == "FORBIDDEN"
    assert await held.call("ns/op", {"doc": {"id": 2}}, identity=STAR)
