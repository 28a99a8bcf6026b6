"""``search``: the hits as they came, and beside them one flat result for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from headgate.errors import ResourceLimit
from headgate.mcp.serve.outcome import Outcome
from headgate.mcp.serve.reader import Reader, ref_of
from headgate.model.query import SearchQuery
from headgate.text.budget import TOOL_RESULT
from headgate.text.ladder import Handles
from headgate.text.marks import cut_marked
from headgate.text.search import search_text, source_mix
from headgate.text.titles import title

_SHORT_CHARS = 96
_WINDOWS = 3
_TITLE_SOURCE_CHARS = 200
_TEXT_ROOM = 4_000

Json = dict[str, Any]


async def search(reader: Reader, query: SearchQuery) -> Outcome:
    """Answer a search."""
    answer = await reader.port.search(query, preview_chars=_TITLE_SOURCE_CHARS)
    body = answer.body()
    hits = cast("list[Json]", body.get("data", []))
    results = [_result(reader, hit) for hit in hits]
    structured: Json = {
        "results": results,
        **reader.structured(body, answer),
        "content_ladder": {
            "kind": "search_results",
            "read_tool": reader.windows.tool,
            "records_ref": "structuredContent.results[].match_windows",
        },
    }
    mix = source_mix(hits)
    if len(mix) > 1:
        structured["source_mix"] = mix
    text = search_text(body, results)
    return Outcome(_fitted(structured, hits), text)


def _fitted(structured: Json, hits: list[Json]) -> Json:
    """Leave windows out of the flat results, then shorten excerpts, while the whole is too large.

    Raises:
        ResourceLimit: it is too large for all that.
    """
    for reduce in (_drop_windows, _shorten_excerpts):
        if _fits(structured):
            return structured
        reduce(structured, hits)
    if not _fits(structured):
        raise ResourceLimit("This page of hits is too large for one answer.", hint="Ask for a smaller limit.")
    return structured


def _fits(structured: Json) -> bool:
    return len(msgspec.json.encode(structured)) <= TOOL_RESULT - _TEXT_ROOM


def _shorten_excerpts(structured: Json, hits: list[Json]) -> None:
    # A server of our own never sends such excerpts; another one may. A short snippet of each hit stays.
    for hit in hits:
        snippet = hit.get("snippet")
        if isinstance(snippet, dict):
            shown = cast("Json", snippet)
            shown["text"] = cut_marked(str(shown.get("text") or ""), _SHORT_CHARS)
        for excerpt in _excerpts(hit):
            cast("Json", excerpt).pop("preview_text", None)
    structured["data"].setdefault("meta", {})["reduced"] = "Excerpts are shortened to fit."


def _drop_windows(structured: Json, _hits: list[Json]) -> None:
    for result in structured["results"]:
        result.pop("match_windows", None)
    structured["content_ladder"]["records_ref"] = "structuredContent.data.data[].evidence_excerpts"


def _result(reader: Reader, hit: Json) -> Json:
    ref = ref_of(hit, key="record_key")
    named = title(hit)
    # The record's fields came along for its title only; the envelope of a search holds none.
    hit.pop("data", None)
    hit.pop("previews", None)
    result: Json = {
        "id": _id(reader, hit),
        "title": named,
        "url": reader.url(ref) if ref.stream else _url(hit),
    }
    # Its stream and key are in its id, and the envelope beside it tells the rest.
    if hit.get("connection_id") is not None:
        result["connection_id"] = hit["connection_id"]
    # A field that the excerpt shows whole needs no reading on.
    begun = [excerpt for excerpt in _excerpts(hit) if excerpt.get("truncated", True)]
    windows = [_window(reader.naming(ref), excerpt) for excerpt in begun[:_WINDOWS]]
    return {**result, "match_windows": windows} if windows else result


def _id(reader: Reader, hit: Mapping[str, Any]) -> str:
    # A hit that is no record has its own id, which is passed on as it is.
    is_record = bool(hit.get("stream")) and hit.get("record_key") is not None
    return (
        reader.handles.result_id(ref_of(hit, key="record_key"))
        if is_record
        else str(hit.get("id") or _url(hit))
    )


def _url(hit: Mapping[str, Any]) -> str:
    return next((str(hit[key]) for key in ("url", "record_url", "href", "source_url") if hit.get(key)), "")


def _excerpts(hit: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return cast("Sequence[Mapping[str, Any]]", hit.get("evidence_excerpts") or ())


def _window(naming: Handles, excerpt: Mapping[str, Any]) -> Json:
    path = str(excerpt["field_path"])
    read = cast("Mapping[str, Any]", excerpt.get("read") or {})
    selector = {key: read[key] for key in ("offset_chars", "limit_chars") if isinstance(read.get(key), int)}
    # The words around the match stand in the envelope; they are not said twice.
    return {
        "field_path": path,
        "complete": False,
        "read": naming.read_at(path, selector),
    }
