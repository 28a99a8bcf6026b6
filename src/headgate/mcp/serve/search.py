"""``search``: the hits as the resource server gives them, and beside them one flat result for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from headgate.errors import ResourceLimit
from headgate.mcp.serve.reader import Reader, ref_of_hit
from headgate.mcp.serve.results import Outcome
from headgate.model.plan import HIT_CHARS
from headgate.model.query import SearchQuery
from headgate.model.wire import HitBody, Json, SearchBody
from headgate.text.document import title
from headgate.text.line import line_parts
from headgate.text.search import cut_marked, search_text
from headgate.text.writing import ENVELOPE, HITS_BYTES, TOOL_RESULT, page_bytes, smaller_limit

DEFAULT_HITS = 10
_WINDOWS = 3
_SHORT_CHARS = 64


async def search(reader: Reader, query: SearchQuery) -> Outcome:
    """Answer a search."""
    answer = await reader.port.search(
        query, line_chars=HIT_CHARS, page_bytes=page_bytes(query.limit, DEFAULT_HITS, HITS_BYTES)
    )
    body: SearchBody = answer.body()
    hits = body.get("data", [])
    results = [_result(reader, hit) for hit in hits]
    structured: Json = {"results": results, **reader.fenced(body, answer)}
    if any("match_windows" in result for result in results):
        structured["content_ladder"] = {
            "read_tool": reader.windows.tool,
            "note": "Call read_tool with the id of a result and the args of its match_windows.",
        }
    text = search_text(body, results, cursor=query.cursor, tool=reader.windows.tool)
    return Outcome(_bounded(structured, body, text), text, has_trust=True)


def _bounded(structured: Json, body: SearchBody, text: str) -> msgspec.Raw:
    """Encode an answer; only a server that does not cut its pages can send one of which excerpts are left out."""
    limit_bytes = TOOL_RESULT - ENVELOPE - len(msgspec.json.encode(text))
    written = msgspec.json.encode(structured)
    if len(written) > limit_bytes:
        _shorten_excerpts(body)
        written = msgspec.json.encode(structured)
    if len(written) <= limit_bytes:
        return msgspec.Raw(written)
    fitting = smaller_limit(len(structured["results"]), limit_bytes, len(written))
    raise ResourceLimit(
        "This page of hits is too large for one answer.",
        hint=f"Ask for a smaller limit, such as limit={fitting}.",
        data={"request_id": structured["request_id"]},
    )


def _shorten_excerpts(body: SearchBody) -> None:
    """Keep a short snippet of each hit; where its texts go on stands in the results."""
    for hit in body.get("data", []):
        snippet = hit.get("snippet")
        if isinstance(snippet, dict):
            snippet["text"] = cut_marked(str(snippet.get("text") or ""), _SHORT_CHARS)
        hit.pop("evidence_excerpts", None)
    body.setdefault("meta", {})["reduced"] = "Excerpts are shortened to fit."


def _result(reader: Reader, hit: HitBody) -> Json:
    """Make the flat result of a hit: what its record is, and where its texts go on; the envelope has the rest."""
    ref = ref_of_hit(hit)
    result: Json = {"id": _id(reader, hit), "title": title(hit), **line_parts(hit), "url": _url(hit)}
    if ref.stream:
        result["url"] = reader.short_url(ref)
    # Stream and key are in the id, and the rest is in the envelope.
    if hit.get("connection_id") is not None:
        result["connection_id"] = hit.get("connection_id")
    windows = [
        {**size, "read": {"args": {"field_path": path, **place}}} for path, size, place in _places(hit)
    ]
    # What a record is stands in the results, and the envelope of a search holds no fields of it.
    for member in ("line", "data", "previews", "read"):
        hit.pop(member, None)
    return {**result, "match_windows": windows} if windows else result


def _places(hit: HitBody) -> list[tuple[str, Json, Json]]:
    """Return the fields of which a hit shows a part, their sizes, and where each is read on: in either form of a hit."""
    read: Any = hit.get("read")
    if isinstance(read, dict):
        place = cast("Json", read)
        return [(str(place.get("field_path")), _numbers(place, "size_chars"), _selector(place))]
    # A field that the excerpt shows whole needs no window.
    begun = [excerpt for excerpt in hit.get("evidence_excerpts") or [] if excerpt.get("truncated", True)]
    return [
        (str(excerpt.get("field_path")), {}, _selector(excerpt.get("read") or {}))
        for excerpt in begun[:_WINDOWS]
    ]


def _selector(place: Mapping[str, Any]) -> Json:
    return _numbers(place, "offset_chars", "limit_chars")


def _numbers(place: Mapping[str, Any], *names: str) -> Json:
    return {name: place[name] for name in names if isinstance(place.get(name), int)}


def _id(reader: Reader, hit: HitBody) -> str:
    if hit.get("stream") and hit.get("record_key") is not None:
        return reader.handles.result_id(ref_of_hit(hit))
    # A hit that is no record has its own id, which is passed on as it is.
    return str(hit.get("id") or _url(hit))


def _url(hit: HitBody) -> str:
    members: Mapping[str, object] = hit
    named = (members.get(key) for key in ("url", "record_url", "href", "source_url"))
    return next((str(url) for url in named if url), "")
