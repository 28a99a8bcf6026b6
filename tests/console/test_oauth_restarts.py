"""The journey of an authorization with a restart of the program between every two steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.console.browsers import Browser, signed_in
from tests.console.clients import Client, change, open_consent, query_of
from tests.in_process import LocalProgram, local_program
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
_T = TypeVar("_T")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_nothing_of_an_authorization_is_lost_by_a_restart_between_any_two_steps(tmp_path: Path):
    client, restarts = Client(None), [0]  # type: ignore[arg-type]
    browser = Browser(None)  # type: ignore[arg-type]

    async def step(work: Callable[[LocalProgram], Awaitable[_T]]) -> _T:
        async with local_program(tmp_path) as program:
            client.program = browser.program = program
            restarts[0] += 1
            return await work(program)

    async def begin(program: LocalProgram) -> str:
        await program.declare("mail", declaration())
        made = await signed_in(program)
        browser.cookies, browser.form_key = made.cookies, made.form_key
        return await program.connect("mail", "Home mail")

    key = f"{await step(begin)}/messages"
    assert (await step(lambda _: client.register())).status == 201
    path, shown = await step(lambda _: open_consent(browser, client))
    shown = await step(lambda _: change(browser, path, shown, **{f"pick/{key}": "1"}))
    decided = await step(lambda _: change(browser, path, shown, decision="approve"))
    token: Any = (await step(lambda _: client.redeem(query_of(decided.location)["code"]))).body
    for _ in range(3):
        access = token["access_token"]
        assert (await step(lambda program, access=access: program.get("/v1/streams", access))).status == 200
        old = token["refresh_token"]
        token = (await step(lambda _, old=old: client.refresh(old))).body
    access = token["access_token"]

    async def revoke(program: LocalProgram) -> int:
        body = f"client_id={client.id}&token={access}".encode()
        return (await program.ask("POST", "/oauth/revoke", body=body)).status

    assert await step(revoke) == 200
    assert (await step(lambda program: program.get("/v1/streams", access))).status == 401
    print(f"{restarts[0]} steps, each after a restart")  # noqa: T201 - the figure is read in the output
