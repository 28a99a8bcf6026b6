"""A real ``headgate serve`` with some mail in it, and what can be seen of its process from outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.program import Served, headgate, serving
from tests.schema.declarations import declaration
from tests.web.visitors import Heard, ask_once

MAIL = "/v1/streams/messages/records"


def line(key: str, **data: Any) -> bytes:
    """Write one record of mail as a line to ingest."""
    values = {"id": key, "sent_at": "2026-03-01T00:00:00Z", **data}
    return json.dumps({"key": key, "data": values, "emitted_at": "2026-03-01T00:00:00Z"}).encode()


@dataclass(frozen=True, slots=True)
class Live:
    place: Path
    owner: str
    served: Served
    log: Path

    @property
    def pid(self) -> int:
        return self.served.process.pid

    def ask(self, method: str, path: str, token: str | None = None, body: bytes = b"") -> Heard:
        return ask_once(self.served.address, method, path, token, body=body)

    def run(self, *arguments: str) -> Any:
        """Run a command on the server's home, and read the JSON it prints."""
        done = headgate(self.place, "--home", "home", *arguments, "--json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    def connect(self, name: str = "Home") -> str:
        """Add a connection of mail."""
        document = json.dumps(declaration()).encode()
        assert self.ask("PUT", "/v1/declarations/mail", self.owner, document).status == 200
        body = json.dumps({"connector_key": "mail", "display_name": name}).encode()
        return self.ask("POST", "/v1/connections", self.owner, body).body["connection_id"]

    def ingest(self, connection: str, lines: list[bytes]) -> None:
        path = f"/v1/ingest/messages?connection_id={connection}"
        taken = self.ask("POST", path, self.owner, b"\n".join(lines))
        assert (taken.status, taken.body["records_accepted"]) == (200, len(lines)), taken

    def grant(self, *options: str, client: str = "agent") -> str:
        """Give a client all mail, or what the options say of it."""
        made = self.run("grants", "create", "--client", client, "--stream", "messages", *options)
        return made["access_token"]

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def memory_mib(self) -> float:
        """Give the resident memory of the server's process."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        found = next(one for one in status.splitlines() if one.startswith("VmRSS:"))
        return int(found.split()[1]) / 1024


def owner_of(place: Path) -> str:
    """Make a token for the owner of a home."""
    return json.loads(headgate(place, "--home", "home", "owner", "token", "--json").out)["access_token"]


@contextmanager
def living(place: Path, *arguments: str, owner: str | None = None, **extra: str) -> Iterator[Live]:
    """Serve a home, with no limit for each token unless one is said."""
    token = owner or owner_of(place)
    settings = {"HEADGATE_RATE_LIMIT": "0", **extra}
    log = place / "serve.log"
    with serving(place, *arguments, log=log, **settings) as served:
        yield Live(place, token, served, log)
