"""F4: what a whole program does on a home that it may not write. Run as a separate program without that right.

``python -m tests.hostile.store.frozen HOME CONNECTION OWNER CLIENT`` prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

from headgate.home import open_home
from headgate.hosting import web_app
from headgate.model.ids import ConnectionId
from headgate.settings import resolve
from headgate.telemetry import configure_logs
from headgate.wiring import build_services
from tests.hostile.store.scene import line, page, read, search
from tests.in_process import Clock, LocalProgram


async def ask(place: Path, mine: str, owner: str, client: str) -> dict[str, Any]:
    settings = resolve(
        {"home": str(place), "rate_limit": "0", "semantic_model": "off"}, {}, {}, Path("none")
    ).settings
    configure_logs("warning", "json", io.StringIO())
    clock = Clock()
    services = build_services(settings, open_home(place), clock=clock)
    found: dict[str, Any] = {}
    async with services.running():
        program = LocalProgram(services, web_app(services), clock, owner, services.metrics)
        for name in ("healthz", "readyz"):
            answer = await program.get(f"/{name}")
            found[name] = [answer.status, answer.body["status"]]
        for name, token in (("client", client), ("owner", owner)):
            answer = await program.get("/v1/streams/messages/records?limit=5", token)
            found[name] = [answer.status, len(answer.body["data"]) if answer.status == 200 else answer.code]
        sent = await program.ask(
            "POST", f"/v1/ingest/messages?connection_id={mine}", owner, body=line("new"), headers=()
        )
        found["ingest"] = [sent.status, sent.code]
        found["page"] = len(await page(services.store, ConnectionId(mine)))
        found["new"] = len(await read(services.store, ConnectionId(mine), "new"))
        found["search"] = await search(services.store, ConnectionId(mine), "subject")
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(ask(Path(sys.argv[1]), *sys.argv[2:]))) + "\n")
