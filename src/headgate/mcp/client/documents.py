"""Fetch one small public document, through the same checked addresses and limits as calls to a server."""

from __future__ import annotations

import asyncio

import httpx2

from headgate.auth.oauth.client_documents import MAX_DOCUMENT_BYTES, FetchedDocument
from headgate.errors import UpstreamTimeout, UpstreamUnreachable
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.network import DialOptions, parse_endpoint
from headgate.mcp.client.pool import OutgoingRequest, PooledSender
from headgate.mcp.client.request_state import RequestState
from headgate.mcp.client.wire import read_whole

_SECONDS = 3.0
_LIMITS = Limits(max_bytes=MAX_DOCUMENT_BYTES, idle_seconds=_SECONDS, total_seconds=_SECONDS)
_OPTIONS = DialOptions(connect_seconds=_SECONDS)


async def fetch_document(url: str, options: DialOptions = _OPTIONS) -> FetchedDocument:
    """Fetch a document. A redirect is not followed, no cookie or token is sent, and no proxy is asked."""
    endpoint = parse_endpoint(url)
    sender = PooledSender(endpoint, options)
    state = RequestState(asyncio.get_running_loop().time() + _SECONDS)
    headers = [
        (b"host", endpoint.url.netloc),
        (b"accept", b"application/json"),
        (b"accept-encoding", b"identity"),
        (b"user-agent", b"headgate"),
    ]
    try:
        async with asyncio.timeout(_SECONDS):
            response = await sender.send(OutgoingRequest("GET", endpoint.url, headers, b""), state)
            content = await read_whole(response, state, _LIMITS)
    except TimeoutError:
        raise UpstreamTimeout from None
    except (httpx2.TransportError, OSError) as error:
        raise UpstreamUnreachable(type(error).__name__) from None
    finally:
        await sender.aclose()
    found = response.headers
    return FetchedDocument(
        response.status, found.get("content-type", ""), found.get("cache-control", ""), content
    )
