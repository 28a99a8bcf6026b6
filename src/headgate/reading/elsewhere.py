"""Search by meaning for a process that makes no vectors: the server of the home does it, or words have to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from headgate.errors import ResourceServerUnreachable
from headgate.model.query import SearchMode, SearchQuery
from headgate.model.warning import ReadWarning, WarningCode
from headgate.reading.local import LocalResourceServer
from headgate.reading.port import ReadAnswer

_BY_WORDS = ReadWarning(
    WarningCode.COMPATIBILITY_FALLBACK,
    "Searched by words: search by meaning needs the server of this home, which does not run (headgate serve).",
    param="mode",
)


class LocalWithoutModel(LocalResourceServer):
    """The resource server in process, without a model."""

    _token: str
    #: Returns the address of the server that runs on the home; None if none does.
    _served_address: Callable[[], str | None]

    async def search(self, query: SearchQuery, *, title_chars: int | None = None) -> ReadAnswer:
        """Find records by words here, and by meaning through the server of the home."""
        if query.mode is SearchMode.LEXICAL:
            return await super().search(query, title_chars=title_chars)
        address = self._served_address()
        if address is not None:
            with suppress(ResourceServerUnreachable):
                return await _search_at(address, self._token, query, title_chars)
        context = replace(self._context, warnings=(*self._context.warnings, _BY_WORDS))
        by_words = LocalResourceServer(self._home, context)
        return await by_words.search(replace(query, mode=SearchMode.LEXICAL), title_chars=title_chars)


async def _search_at(address: str, token: str, query: SearchQuery, title_chars: int | None) -> ReadAnswer:
    # Only here: other reads need no HTTP client.
    from headgate.reading.remote import RemoteResourceServer, http_client  # noqa: PLC0415 - slow to import

    async with http_client(token) as client:
        return await RemoteResourceServer(address, client).search(query, title_chars=title_chars)
