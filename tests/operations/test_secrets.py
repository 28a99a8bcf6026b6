"""A secret shows itself nowhere: every surface is searched for one planted word."""

import asyncio
import copy
import dataclasses
import io
import json
import logging
import pickle
import traceback

import msgspec
import pytest
from pydantic import TypeAdapter

from headgate.errors import CallError
from headgate.operations.registration import OperationContext
from headgate.operations.secrets import REDACTED, Capabilities, Secret
from tests.operations.parts import composing, leaf, operation, registry, token

CANARY = "canary-7b21e0"


def test_a_secret_is_read_only_by_asking_for_it():
    secret = Secret(CANARY)
    assert secret.expose() == CANARY
    assert Secret(secret).expose() == CANARY
    for text in (str(secret), repr(secret), f"{secret}", f"{secret!r:>40}", "%s" % secret, repr([secret])):  # noqa: UP031 - one more way to print
        assert CANARY not in text
        assert REDACTED in text


WRITERS = [
    pickle.dumps,
    copy.copy,
    copy.deepcopy,
    json.dumps,
    msgspec.json.encode,
    msgspec.to_builtins,
    vars,
    iter,
    bytes,
    TypeAdapter(object).dump_json,
    lambda secret: secret.__getstate__(),
    lambda secret: setattr(secret, "value", 1),
]


@pytest.mark.parametrize(
    ("leak", "holder"),
    [
        *((leak, Secret(CANARY)) for leak in [*WRITERS, hash, len]),
        *((leak, token(CANARY)) for leak in WRITERS),
    ],
)
def test_no_way_of_writing_an_object_down_works_on_a_secret(leak, holder):
    with pytest.raises(Exception) as refused:  # noqa: PT011 - any refusal will do, as long as it says nothing
        leak(holder)
    assert CANARY not in str(refused.value)


def test_secrets_are_compared_by_value():
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert Secret("é") == Secret("é")
    assert Secret("\ud800") != Secret("\ud801")


def test_capabilities_grow_by_making_new_ones_and_print_only_their_number():
    none = Capabilities()
    one = none.with_http_token("mail", CANARY)
    two = one.with_api_key("mail", "key")
    assert (len(none), len(one), len(two)) == (0, 1, 2)
    assert one.get("mail") == Secret(CANARY)
    assert two.get("mail") == Secret("key")
    assert two.get("other") is None
    assert repr(two) == "Capabilities(2)"
    assert not none
    assert one


@pytest.mark.requirement("S0-17")
def test_a_token_is_in_the_capabilities_and_never_in_the_spec():
    registration = leaf(capabilities=token(CANARY))
    assert registration.capabilities.get("ns").expose() == CANARY
    assert len(leaf().capabilities) == 0
    assert CANARY not in json.dumps(registration.spec.to_dict())
    assert CANARY not in repr(registration)
    with pytest.raises(TypeError):
        dataclasses.asdict(registration)
    with pytest.raises(TypeError):
        pickle.dumps(registration)


def everything_about(*things):
    """Write down all that a program could write down about some objects."""
    for thing in things:
        yield repr(thing)
        yield str(thing)
        if isinstance(thing, BaseException):
            yield "".join(traceback.TracebackException.from_exception(thing, capture_locals=True).format())
        for encode in (pickle.dumps, msgspec.json.encode, lambda one: json.dumps(one.to_dict())):
            try:
                yield str(encode(thing))
            except Exception as refused:  # noqa: BLE001 - a refusal is fine, and is searched too
                yield repr(refused)


@pytest.mark.anyio
async def test_no_log_repr_traceback_pickle_or_envelope_of_a_call_holds_a_token(caplog):
    caplog.set_level(logging.DEBUG)
    seen = []

    async def inner(value, context):
        seen.extend([context, context.capabilities, context.env])
        if value.get("fail"):
            raise RuntimeError("broken inside")
        return {"ok": True}

    async def outer(value, context):
        seen.append(context)
        return await context.env.call("ns/leaf", value)

    held = registry(
        leaf(inner, capabilities=token(CANARY)),
        composing(outer, "ns/leaf", capabilities=token(CANARY + "-outer")),
    )
    for value in ({}, {"fail": True}):
        try:
            seen.append(await held.execute("ns/outer", value))
        except CallError as error:
            seen.extend([error, error.__cause__])
    seen.extend([held, *held])
    assert len(seen) > 8
    written = [*everything_about(*seen), caplog.text]
    assert not [text for text in written if CANARY in text]


@pytest.mark.anyio
async def test_the_event_loop_says_nothing_about_a_token_either():
    loop, out = asyncio.get_running_loop(), io.StringIO()
    loop.set_exception_handler(lambda _, what: out.write(repr(what)))

    async def fails(_value, _context):
        raise ValueError("no")

    held = registry(operation(fails, capabilities=token(CANARY)))
    with pytest.raises(CallError):
        await held.call("ns/op")
    assert CANARY not in out.getvalue()
    assert held.in_flight == ()


def test_a_context_prints_no_token():
    assert CANARY not in repr(OperationContext("1", capabilities=token(CANARY)))
