"""A program with one stream, its signed-in owner, and clients that are let in."""

from __future__ import annotations

from typing import Any

from tests.console.browsers import Browser, signed_in
from tests.console.clients import Client, approve, query_of
from tests.in_process import LocalProgram
from tests.schema.declarations import declaration


class World:
    def __init__(self, program: LocalProgram, connection: str, browser: Browser) -> None:
        self.program, self.connection, self.browser = program, connection, browser
        self.key = f"{connection}/messages"

    async def connected(self, **register: Any) -> tuple[Client, dict[str, Any]]:
        """Give a client that holds tokens, and them."""
        client = Client(self.program)
        await client.register(**register)
        code = query_of(await approve(self.browser, client, self.key))["code"]
        return client, (await client.redeem(code)).body

    async def code(self, client: Client, **changes: Any) -> str:
        return query_of(await approve(self.browser, client, self.key, **changes))["code"]

    async def reads(self, token: str) -> int:
        return (await self.program.get("/v1/streams", token)).status


async def make(program: LocalProgram) -> World:
    await program.declare("mail", declaration())
    connection = await program.connect("mail", "Home mail")
    return World(program, connection, await signed_in(program))
