"""Small operations to build tests from."""

from headgate.operations.registration import HandlerRegistration, Provenance, ScopedEnv
from headgate.operations.registry import Registry
from headgate.operations.secrets import Capabilities
from headgate.operations.spec import OperationSpec, OperationType, Visibility


async def echo(value, _context):
    return value


def spec(name="op", **fields):
    fields = {"op_type": OperationType.QUERY, "visibility": Visibility.EXTERNAL, **fields}
    return OperationSpec(name, fields.pop("namespace", "ns"), **fields)


REGISTRATION_FIELDS = {
    "provenance",
    "composition_authority",
    "scoped_env",
    "capabilities",
    "output_policy",
    "apply_input_defaults",
}


def operation(handler=echo, name="op", **fields):
    own = {key: fields.pop(key) for key in REGISTRATION_FIELDS & fields.keys()}
    return HandlerRegistration(spec(name, **fields), handler, **own)


def leaf(handler=echo, name="leaf", **fields):
    fields = {"provenance": Provenance.FROM_MCP, "visibility": Visibility.INTERNAL, **fields}
    return operation(handler, name, **fields)


def composing(handler, *allowed, name="outer", **fields):
    return operation(handler, name, scoped_env=ScopedEnv(frozenset(allowed)), **fields)


def registry(*registrations):
    return Registry(registrations, now_ms=lambda: 1_700_000_000_000)


def token(value, service="ns"):
    return Capabilities().with_http_token(service, value)
