"""Fetch one small public document, through the same checked addresses and limits as calls to a server."""

from __future__ import annotations

import asyncio

import httpx2

from headgate.auth.oauth.client_documents import MAX_DOCUMENT_BYTES, FetchedDocument
from headgate.errors import UpstreamTimeout, UpstreamUnreachable
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.network import DialOptions, parse_endpoint
from headgate.mcp.client.pool import PooledTransport, send
from headgate.mcp.client.request_state import RequestState
from headgate.mcp.client.wire import read_whole

_SECONDS = 3.0
_LIMITS = Limits(max_bytes=MAX_DOCUMENT_BYTES, idle_seconds=_SECONDS, total_seconds=_SECONDS)
_OPTIONS = DialOptions(connect_seconds=_SECONDS)


async def fetch_document(url: str, options: DialOptions = _OPTIONS) -> FetchedDocument:
    """Fetch a document. A redirect is not followed, no cookie or token is sent, and no proxy is asked."""
    endpoint = parse_endpoint(url)
    transport = PooledTransport(endpoint, options)
    state = RequestState(asyncio.get_running_loop().time() + _SECONDS)
    headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "headgate"}
    try:
        async with asyncio.timeout(_SECONDS):
            response = await send(transport, httpx2.Request("GET", endpoint.url, headers=headers), state)
            content = await read_whole(response, state, _LIMITS)
    except TimeoutError:
        raise UpstreamTimeout from None
    except (httpx2.TransportError, OSError) as error:
        raise UpstreamUnreachable(type(error).__name__) from None
    finally:
        await transport.aclose()
    received = response.headers
    return FetchedDocument(
        response.status_code, received.get("content-type", ""), received.get("cache-control", ""), content
    )
