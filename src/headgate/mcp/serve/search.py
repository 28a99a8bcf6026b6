"""``search``: the hits as the resource server gives them, and beside them one flat result for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from headgate.errors import ResourceLimit
from headgate.mcp.serve.reader import Reader, ref_of_hit
from headgate.mcp.serve.results import Outcome
from headgate.model.query import SearchQuery
from headgate.model.wire import ExcerptBody, HitBody, Json, SearchBody
from headgate.text.document import title
from headgate.text.ladder import Handles
from headgate.text.line import LINE_CHARS, PARTS, line_parts
from headgate.text.search import cut_marked, search_text, source_mix
from headgate.text.writing import ENVELOPE, TOOL_RESULT, smaller_limit

_SHORT_CHARS = 64
_WINDOWS = 3
#: What a result may take in both channels before calls are shortened.
_EASY_BYTES = 36_000
#: So many hits keep their whole line on a page that is too large.
_WHOLE_LINES = 10


async def search(reader: Reader, query: SearchQuery) -> Outcome:
    """Answer a search."""
    answer = await reader.port.search(query, line_chars=LINE_CHARS)
    body: SearchBody = answer.body()
    hits = body.get("data", [])
    results = [_result(reader, hit) for hit in hits]
    structured: Json = {
        "results": results,
        **reader.fenced(body, answer),
        "content_ladder": {
            "kind": "search_results",
            "read_tool": reader.windows.tool,
            "records_ref": "structuredContent.results[].match_windows",
        },
    }
    mix = source_mix(hits)
    if len(mix) > 1:
        structured["source_mix"] = mix
    text = search_text(body, results, cursor=query.cursor, tool=reader.windows.tool)
    return Outcome(_fitted(structured, body, text), text, has_trust=True)


def _fitted(structured: Json, body: SearchBody, text: str) -> msgspec.Raw:
    """Encode an answer; while it is too large, leave out what is in it twice, then lines, and shorten the excerpts."""
    others_bytes = ENVELOPE + len(msgspec.json.encode(text))
    limit_bytes = TOOL_RESULT - others_bytes
    # What stands in it twice is left out sooner than words around a match.
    reductions: tuple[tuple[Callable[[Json, SearchBody], None], int], ...] = (
        (_keep_all, _EASY_BYTES - others_bytes),
        (_drop_repeats, _EASY_BYTES - others_bytes),
        (_shorten_lines, limit_bytes),
        (_shorten_windows, limit_bytes),
        (_shorten_excerpts, limit_bytes),
    )
    written = b""
    for reduce, most_bytes in reductions:
        reduce(structured, body)
        written = msgspec.json.encode(structured)
        if len(written) <= most_bytes:
            return msgspec.Raw(written)
    fitting = smaller_limit(len(structured["results"]), limit_bytes, len(written))
    raise ResourceLimit(
        "This page of hits is too large for one answer.",
        hint=f"Ask for a smaller limit, such as limit={fitting}.",
        data={"request_id": structured["request_id"]},
    )


def _keep_all(_structured: Json, _body: SearchBody) -> None:
    """Reduce nothing."""


def _drop_repeats(_structured: Json, body: SearchBody) -> None:
    """Leave the place of a match to the windows of the results."""
    for hit in body.get("data", []):
        for excerpt in _excerpts(hit)[:_WINDOWS]:
            excerpt.pop("read", None)


def _shorten_windows(structured: Json, _body: SearchBody) -> None:
    """Leave out of the calls what the id and the ladder say: the record, the tool, and that there is more."""
    for result in structured["results"]:
        for window in result.get("match_windows", ()):
            args = window["read"]["args"]
            args.pop("id", None)
            window["read"] = {"args": args}
            del window["complete"]
    structured["content_ladder"]["note"] = "Call read_tool with the id of the result and with read.args."


def _shorten_lines(structured: Json, _body: SearchBody) -> None:
    """Leave the tail of a long page its titles; the envelope has the times."""
    for result in structured["results"][_WHOLE_LINES:]:
        for part in PARTS:
            result.pop(part, None)


def _shorten_excerpts(_structured: Json, body: SearchBody) -> None:
    # A short snippet of each hit stays.
    for hit in body.get("data", []):
        snippet = hit.get("snippet")
        if isinstance(snippet, dict):
            snippet["text"] = cut_marked(str(snippet.get("text") or ""), _SHORT_CHARS)
        for excerpt in _excerpts(hit):
            excerpt.pop("preview_text", None)
    body.setdefault("meta", {})["reduced"] = "Excerpts are shortened to fit."


def _result(reader: Reader, hit: HitBody) -> Json:
    ref = ref_of_hit(hit)
    named = title(hit)
    # What a record is stands in the results, and the envelope of a search holds no fields of it.
    facts = line_parts(hit)
    for member in ("line", "data", "previews"):
        hit.pop(member, None)
    result: Json = {
        "id": _id(reader, hit),
        "title": named,
        **facts,
        "url": reader.url(ref) if ref.stream else _url(hit),
    }
    # Stream and key are in the id, and the rest is in the envelope.
    if hit.get("connection_id") is not None:
        result["connection_id"] = hit.get("connection_id")
    # A field that the excerpt shows whole needs no window.
    begun = [excerpt for excerpt in _excerpts(hit) if excerpt.get("truncated", True)]
    windows = [_window(reader.naming(ref), excerpt) for excerpt in begun[:_WINDOWS]]
    return {**result, "match_windows": windows} if windows else result


def _id(reader: Reader, hit: HitBody) -> str:
    if hit.get("stream") and hit.get("record_key") is not None:
        return reader.handles.result_id(ref_of_hit(hit))
    # A hit that is no record has its own id, which is passed on as it is.
    return str(hit.get("id") or _url(hit))


def _url(hit: HitBody) -> str:
    members: Mapping[str, object] = hit
    named = (members.get(key) for key in ("url", "record_url", "href", "source_url"))
    return next((str(url) for url in named if url), "")


def _excerpts(hit: HitBody) -> list[ExcerptBody]:
    return hit.get("evidence_excerpts") or []


def _window(naming: Handles, excerpt: ExcerptBody) -> Json:
    path = str(excerpt.get("field_path"))
    place = excerpt.get("read") or {}
    selector = {key: place[key] for key in ("offset_chars", "limit_chars") if isinstance(place.get(key), int)}
    # The words around the match are in the envelope, and are not repeated.
    return {"field_path": path, "complete": False, "read": naming.read_at(path, selector)}
