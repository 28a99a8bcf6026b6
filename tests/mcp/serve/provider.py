"""Another resource server: prepared REST bodies on a real socket, and a list of its requests."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.mcp.serve.hosting import serving
from tests.mcp.serve.prepared import found, hit, page, record, window


@dataclass
class Provider:
    """The requests that it got, and their tokens."""

    address: str
    #: Whether it has the route for windows.
    has_windows: bool = True
    #: What its schema says about the token; None for a server that says nothing.
    bearer: dict[str, Any] | None = None
    #: What it answers instead, by path.
    faults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asked: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)

    async def answer(self, request: Request) -> Response:
        self.asked.append(unquote(request.url.path) + ("?" + request.url.query if request.url.query else ""))
        self.tokens.add(request.headers.get("authorization", ""))
        path = request.url.path
        if path.endswith("/moved"):
            return RedirectResponse("https://elsewhere.example/")
        status, body = self.answer_to(path, dict(request.query_params))
        return JSONResponse(body, status, headers={"Request-Id": "req_7"})

    def answer_to(self, path: str, _params: dict[str, str]) -> tuple[int, Any]:
        return self._body(path)

    def _body(self, path: str) -> tuple[int, Any]:
        if path in self.faults:
            return 200, self.faults[path]
        if path.endswith("/field-window") and not self.has_windows:
            return 404, {"detail": "Not Found"}
        if path.startswith("/v1/blobs/"):
            return 404, {"error": {"type": "not_found_error", "code": "blob_not_found", "message": "No."}}
        bodies: dict[str, Any] = {
            "/v1/schema": {"object": "schema", "bearer": self.bearer, "connectors": []},
            "/v1/search": found(hit()),
            "/v1/streams/messages/records": page(record()),
            "/v1/streams/messages/records/m1": record(text="long " * 5000),
            "/v1/streams/messages/records/m1/field-window": window("text", next_cursor=None),
            "/v1/streams/messages/aggregate": {"object": "aggregation", "metric": "count", "value": 4},
        }
        if path in bodies:
            return 200, bodies[path]
        if path.startswith("/v1/streams/oauth"):
            return 401, {"error": "invalid_token", "error_description": "gone"}
        return 403, {
            "error": {"type": "permission_error", "code": "grant_stream_not_allowed", "message": "No."}
        }


@contextmanager
def provider(
    *,
    has_windows: bool = True,
    bearer: dict[str, Any] | None = None,
    faults: Mapping[str, Any] | None = None,
    kind: type[Provider] = Provider,
) -> Iterator[Provider]:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    made = kind(f"http://127.0.0.1:{taken.getsockname()[1]}", has_windows, bearer, faults or {})
    with serving(Starlette(routes=[Route("/{path:path}", made.answer)]), taken):
        yield made
