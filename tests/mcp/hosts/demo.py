"""The demonstration's home with an agent's token, as the hosts were recorded with."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate import wiring
from headgate.auth.clock import now
from headgate.auth.credentials import home_credential_path, write_token
from headgate.auth.grants import Choice, Conditions, issue
from headgate.home import open_home
from headgate.mcp.serve.looking import look
from headgate.sources.demo.filling import fill
from tests.in_process import settings_for


@dataclass(frozen=True, slots=True)
class DemoHome:
    """A directory with the home in it, and the token of an agent that may read everything."""

    place: Path
    token: str

    @property
    def command(self) -> list[str]:
        """The arguments of `headgate` by which a host starts it."""
        return ["--home", str(self.place / "home"), "mcp", "--cache-root", str(self.place)]

    def results(self, calls: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
        """Call tools, and return their whole results by name."""
        return asyncio.run(self._results(calls))

    async def _results(self, calls: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
        settings = settings_for(self.place)
        services = wiring.build_services(settings, open_home(settings.home))
        async with services.running():
            access = await services.admission.admit(self.token)
            return {
                name: (await look(services.reads, access, tool, arguments, "http://127.0.0.1:8321")).whole()
                for name, (tool, arguments) in calls.items()
            }


def demo_home(place: Path) -> DemoHome:
    """Fill a home with the invented person's records, and grant all of them."""
    return DemoHome(place, asyncio.run(_fill(place)))


async def _fill(place: Path) -> str:
    settings = settings_for(place)
    async with wiring.open_stores(settings) as stores:
        await fill(stores.store)
        catalog = await stores.catalog()
        issued = await issue(stores.ledger, Choice(), Conditions("agent"), catalog=catalog, now=now())
    path = home_credential_path(place, settings.home)
    credential = {"access_token": issued.access_token}
    write_token(path, "http://127.0.0.1", credential, created_at="2026-01-01T00:00:00Z")
    return issued.access_token
