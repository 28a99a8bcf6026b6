"""Discovery through calls shows each caller its own operations."""

import pytest

from headgate.errors import CallError
from headgate.operations.discovery import service_operations
from tests.operations.parts import leaf, operation, registry
from tests.operations.test_discovery import READER, RESTRICTED

pytestmark = pytest.mark.anyio


def held():
    made = registry(
        operation(name="open"), operation(name="closed", access_control=RESTRICTED), leaf(name="hidden")
    )
    made.register_all(service_operations(made))
    return made


@pytest.mark.requirement("S0-11")
async def test_the_list_is_that_of_the_caller():
    async def ids(identity):
        found = await held().call("services/list", identity=identity)
        return [one["id"] for one in found["operations"]]

    assert await ids(None) == ["ns/open", "services/list", "services/schema"]
    assert await ids(READER) == ["ns/open", "ns/closed", "services/list", "services/schema"]


@pytest.mark.requirement("S0-11")
async def test_the_schema_is_found_by_any_spelling_and_only_if_visible():
    made = held()
    shown = await made.call("services/schema", {"name": "/ns/open"})
    assert shown["operation"]["id"] == "ns/open"
    assert (await made.call("services/schema", {"name": "ns.closed"}, identity=READER))["operation"][
        "name"
    ] == "closed"
    messages = set()
    for name in ("ns/closed", "ns/hidden", "ns/none"):
        with pytest.raises(CallError) as missing:
            await made.call("services/schema", {"name": name})
        assert (missing.value.code, missing.value.status) == ("NOT_FOUND", 404)
        messages.add(missing.value.message.replace(name, "X"))
    assert len(messages) == 1


async def test_operations_that_come_later_are_seen_too():
    made = held()
    made.register(operation(name="later"))
    assert (await made.call("services/schema", {"name": "ns/later"}))["operation"]["id"] == "ns/later"
