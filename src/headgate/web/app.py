"""The web application: which address is answered by which room."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from headgate.web.page import front_page


def build_app(version: str) -> Starlette:
    """Build the application that ``headgate serve`` runs."""

    async def healthz(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok", "version": version}, headers={"Cache-Control": "no-store"})

    async def front(_request: Request) -> HTMLResponse:
        return HTMLResponse(
            front_page(version),
            headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
        )

    return Starlette(routes=[Route("/", front), Route("/healthz", healthz)])
