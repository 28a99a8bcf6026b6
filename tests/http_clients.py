"""HTTP clients on real sockets: one request on a new connection, and many on one that stays open."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content)

    @property
    def code(self) -> str | None:
        """The code of a refusal, or none for an answer."""
        return self.body["error"]["code"] if self.status >= 400 else None


def ask_once(
    address: str,
    method: str,
    path: str,
    token: str | None = None,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> HttpAnswer:
    """Ask one question on a new connection."""
    place = urlsplit(address)
    line = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE_SECONDS)
    try:
        line.request(method, path, body or None, {**_bearer(token), **(headers or {})})
        answer = line.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return HttpAnswer(answer.status, found, answer.read())
    finally:
        line.close()


def _bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


class KeepAliveClient:
    """One kept connection; asks one question at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader, self._writer, self._host = reader, writer, host

    def send_request(self, method: str, path: str, token: str | None = None, body: bytes = b"") -> None:
        """Send a question, without waiting for its answer."""
        head = [f"{method} {path} HTTP/1.1", f"Host: {self._host}"]
        head += [f"{name}: {value}" for name, value in _bearer(token).items()]
        if body:
            head.append(f"Content-Length: {len(body)}")
        self._writer.write("\r\n".join([*head, "", ""]).encode() + body)

    async def receive_answer(self) -> HttpAnswer:
        """Take the next answer."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (one.partition(": ") for one in head[1:] if one)
        headers = {name.lower(): value for name, _, value in pairs}
        content = await self._reader.readexactly(int(headers.get("content-length", "0")))
        return HttpAnswer(int(head[0].split()[1]), headers, content)

    async def ask(self, method: str, path: str, token: str | None = None, body: bytes = b"") -> HttpAnswer:
        """Ask, and wait for the answer, but not for ever."""
        self.send_request(method, path, token, body)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.receive_answer()

    def abort(self) -> None:
        """Drop the connection at once, whatever is under way."""
        self._writer.transport.abort()


@asynccontextmanager
async def keep_alive_client(address: str) -> AsyncIterator[KeepAliveClient]:
    """Open a connection, and drop it at the end."""
    place = urlsplit(address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=16 * 1024 * 1024)
    try:
        yield KeepAliveClient(reader, writer, place.netloc)
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()
