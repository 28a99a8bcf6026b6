"""The text of a search: the first id before anything else, then sources, and a line with the evidence of each hit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from headgate.model.wire import (
    AggregateBody,
    AggregateMeta,
    HitBody,
    LineBody,
    SearchBody,
    SearchMeta,
    UnderstoodWordBody,
)
from headgate.text.ladder import READ_TOOL
from headgate.text.line import line_facts
from headgate.text.records import paging_line, rest_hint
from headgate.text.writing import (
    ELLIPSIS,
    SEARCH_TEXT,
    cut,
    fitting,
    json_text,
    json_within,
    name,
    shared_lines,
    size,
)

OPEN, CLOSE = "<mark>", "</mark>"
_TAGS = frozenset({OPEN, CLOSE})
_TAG = re.compile(f"({OPEN}|{CLOSE})")
#: Pairs with something in them and something between them, and no other sign that could be a part of a tag.
_PAIRED = re.compile(f"[^<]*+(?:{OPEN}[^<]++{CLOSE}[^<]++)*+(?:{OPEN}[^<]++{CLOSE})?+")


def balanced(text: str) -> str:
    """Drop tags that close nothing or open twice, and close what stays open."""
    if _PAIRED.fullmatch(text):
        return text
    while True:
        mended = _walk(text, 0, len(text))
        # Dropping a tag can join its neighbours to a new one; every round is shorter.
        if mended == text:
            return text
        text = mended


def cut_marked(text: str, limit_chars: int) -> str:
    """Keep that many visible characters around the first match, tags in pairs.

    The tags are not counted, and an ellipsis stands where something was left out.
    """
    return cut_balanced(balanced(text), limit_chars)


def cut_balanced(text: str, limit_chars: int) -> str:
    """Do the same with a text whose tags are in pairs already."""
    length = len(text) - text.count(OPEN) * len(OPEN) - text.count(CLOSE) * len(CLOSE)
    if length <= limit_chars:
        return text
    start = min(max(0, text.find(OPEN) - limit_chars // 3), length - limit_chars)
    inner = balanced(_walk(text, start, start + limit_chars))
    before = ELLIPSIS if start else ""
    return before + inner + (ELLIPSIS if start + limit_chars < length else "")


def _walk(text: str, low: int, high: int) -> str:
    """Keep the visible characters from low to high, and the tags that have something between them."""
    out: list[str] = []
    at, is_open, is_written = 0, False, False
    for piece in _TAG.split(text):
        if at >= high:
            break
        if piece in _TAGS:
            is_open = piece == OPEN
            continue
        part = piece[low - at if low > at else 0 : high - at]
        at += len(piece)
        if part:
            if is_open != is_written:
                out.append(OPEN if is_open else CLOSE)
                is_written = is_open
            out.append(part)
    return "".join([*out, CLOSE] if is_written else out)


_MIX = 8
_MIX_BYTES = 400
_NAME_CHARS = 60
_LABEL_BYTES = 26
_UNDERSTOOD_CHARS = 600
#: How much of a hit is printed, from the most to the least: a third of the bytes of the title, whether its whole origin, and
#: characters of the snippet.
_LEVELS = ((80, True, 96), (60, True, 48), (60, True, 24), (40, False, 24), (40, False, 0), (8, False, 0))
_CLOSING = (
    "To open a hit call fetch with its printed id unchanged; "
    "add connection_id only where a line prints it on its own. "
)


def search_text(
    body: SearchBody,
    results: Sequence[Mapping[str, Any]],
    *,
    cursor: str | None = None,
    tool: str = READ_TOOL,
) -> str:
    """Write the text of a search from its body and its flat results; ``cursor`` is the one it was asked with."""
    lines = [f"search: {len(results)} hit(s). {paging_line(body)}", *understood_line(body)]
    if not results and (body.get("meta") or {}).get("count"):
        lines.append("Counted only, as limit is 0. Pass a limit to see hits.")
        return "\n".join([*lines, *_recall(body)])
    if not results:
        lines.append("Nothing matched. Try fewer or other words, or a beginning* with a star.")
        return "\n".join([*lines, *_recall(body)])
    hits = body.get("data", [])
    # The first id is printed here only: what comes first is not lost when a client cuts the text.
    lines += [f"first_fetch_id={results[0]['id']}", *_mix(hits), *_recall(body), "Top results:"]
    has_sources = len({hit.get("connection_id") for hit in hits}) > 1
    closing = _CLOSING
    if any(result.get("match_windows") for result in results):
        closing += f"Where complete=false, {tool} with that id, field_path and offset_chars reads on. "
    space = SEARCH_TEXT - sum(size(line) + 1 for line in lines)
    space -= size(closing + rest_hint(len(results), len(results), cursor))

    def draw(position: int, entry: tuple[Mapping[str, Any], HitBody], limit_bytes: int) -> str:
        result, hit = entry
        snippet = balanced(_evidence(result, hit))
        return _hit(
            _PrintedHit(position, result, hit, snippet, has_sources=has_sources, tool=tool), limit_bytes
        )

    printed = shared_lines(zip(results, hits, strict=False), len(results), space, draw)
    left = len(results) - len(printed)
    rest = rest_hint(left, len(printed), cursor) if left else ""
    return "\n".join([*lines, *printed, closing + rest]).rstrip()


def source_mix(hits: Sequence[HitBody]) -> list[dict[str, Any]]:
    """Count the hits of each connection, in the order in which they first appear."""
    counts = Counter(str(hit.get("connection_id")) for hit in hits)
    first = {str(hit.get("connection_id")): hit for hit in reversed(hits)}
    return [
        {
            "connection_id": connection,
            **({"connector_key": key} if (key := _connector(first[connection])) else {}),
            **({"display_name": label} if (label := first[connection].get("display_name")) else {}),
            "count": count,
        }
        for connection, count in counts.items()
    ]


def _connector(hit: HitBody) -> str | None:
    """Return the connector's key; other servers give it under its former name, or not at all."""
    return hit.get("connector_key") or hit.get("connector_id")


def _mix(hits: Sequence[HitBody]) -> list[str]:
    mix = source_mix(hits)
    if len(mix) < 2:  # noqa: PLR2004 - one source is no mix
        return []
    written = (
        "{" + ",".join(f"{key}:{_label(value)}" for key, value in entry.items()) + "}" for entry in mix[:_MIX]
    )
    entries = fitting(written, _MIX_BYTES, 0)
    more = [f"more:{len(mix) - len(entries)}"] if len(mix) > len(entries) else []
    return [f"source_mix={'|'.join([*entries, *more])}"]


def _label(value: Any) -> str:
    return _name(value) if isinstance(value, str) else json_text(value)


@lru_cache(maxsize=1024)
def _name(text: str) -> str:
    """Write a name of a source, a stream or a field: nearly all hits of an answer have the same."""
    return name(cut(text, _NAME_CHARS))


def _recall(body: SearchBody) -> list[str]:
    recall = (body.get("meta") or {}).get("recall") or {}
    is_window = recall.get("ranking_scope") == "candidate_window"
    if recall.get("complete", True) and not recall.get("truncated") and not is_window:
        return []
    pending = recall.get("pending_count")
    if pending:
        return [f"Recall: {pending} records cannot be found by meaning yet; their vectors are being made."]
    ranked = recall.get("ranked_candidate_count")
    which = f"only {ranked} matches were" if isinstance(ranked, int) else "not every match was"
    return [f"Recall: {which} ranked; narrow the search to rank them all."]


def understood_line(body: SearchBody | AggregateBody) -> list[str]:
    """Return in one line how the query was understood, and how many records hold all or most of its words."""
    meta: SearchMeta | AggregateMeta = body.get("meta") or {}
    understood = meta.get("understood") or {}
    words = [_word(word) for word in understood.get("words") or []]
    if not words:
        return []
    parts = [f"words: {', '.join(words)}"]
    parts += [f"left out: {_listed(words)}" for words in [understood.get("left_out")] if words]
    parts += [f"without: {_listed(words)}" for words in [understood.get("excluded")] if words]
    count, partial = meta.get("count"), meta.get("partial_count") or 0
    if isinstance(count, int):
        parts.append(f"{count - partial} matched all" + (f", {partial} some" if partial else ""))
    return [cut("; ".join(parts), _UNDERSTOOD_CHARS)]


def _word(understood: UnderstoodWordBody) -> str:
    text = name(cut(str(understood.get("word")), _NAME_CHARS))
    if understood.get("corrected_to"):
        return f"{text} (no such word; taken for {_listed(understood.get('corrected_to'))})"
    return f"{text} (also {_listed(understood.get('forms'))})" if understood.get("forms") else text


def _listed(words: Sequence[str] | None) -> str:
    return ", ".join(name(cut(str(word), _NAME_CHARS)) for word in words or ())


def _snippet_of(hit: HitBody) -> str:
    snippet = hit.get("snippet")
    return str(snippet.get("text") or "") if isinstance(snippet, dict) else ""


def _evidence(result: Mapping[str, Any], hit: HitBody) -> str:
    """Return the words around the match that a line shows: those of the field that it names."""
    windows = result.get("match_windows")
    return _words_around(hit, windows[0]["field_path"]) if windows else _snippet_of(hit)


def _words_around(hit: HitBody, path: str) -> str:
    """Return the excerpt of a field; without an own text it is the hit's snippet."""
    excerpts = hit.get("evidence_excerpts") or []
    own = (excerpt.get("preview_text") for excerpt in excerpts if excerpt.get("field_path") == path)
    return str(next(own, None) or _snippet_of(hit))


class _PrintedHit(NamedTuple):
    """What a line of the text is made of."""

    position: int
    result: Mapping[str, Any]
    hit: HitBody
    #: The words around the match, with all their marks.
    snippet: str
    has_sources: bool
    tool: str


def _hit(printed: _PrintedHit, limit_bytes: int) -> str:
    """Write a hit in one line: the most that fits of its origin, title, snippet and evidence, and its id."""
    text = ""
    for title_chars, is_full, snippet_chars in _LEVELS:
        text = _written(printed, title_chars, snippet_chars, is_full=is_full)
        if size(text) <= limit_bytes:
            break
    return text


def _written(printed: _PrintedHit, title_chars: int, snippet_chars: int, *, is_full: bool) -> str:
    result, hit = printed.result, printed.hit
    windows: Sequence[Mapping[str, Any]] = result.get("match_windows", ())
    facts = [
        *(line_facts(cast("LineBody", result), is_full=is_full) if snippet_chars else []),
        *_origin(hit, is_full=is_full, has_sources=printed.has_sources),
    ]
    facts.append(f"title={json_within(result['title'], 3 * title_chars)}")
    if result.get("connection_id") and not _embeds(result):
        facts.append(f"connection_id={name(str(result['connection_id']))}")
    first = windows[0]["field_path"] if windows else None
    if first is not None:
        facts.append(f"field_path={name(first)}")
    if hit.get("missing"):
        facts.append(f"missing={json_within(', '.join(hit.get('missing') or ()), _LABEL_BYTES)}")
    snippet = printed.snippet
    if snippet and snippet_chars:
        facts.append(f"snippet={json_text(cut_balanced(snippet, snippet_chars))}")
    if windows:
        facts += _read_on(windows, printed.tool, is_full=is_full)
    # The first id stands above.
    facts.append(f"id={result['id']}" if printed.position else "(first_fetch_id)")
    return f"{printed.position + 1}. {' '.join(facts)}"


def _origin(hit: HitBody, *, is_full: bool, has_sources: bool) -> list[str]:
    label = hit.get("display_name")
    if not is_full:
        source = label or _connector(hit) or hit.get("connection_id")
        return [f"source={json_within(str(source), _LABEL_BYTES)}"] if has_sources and source else []
    origin = {"connector_key": _connector(hit), "stream": hit.get("stream"), "display_name": label}
    return [f"{key}={_label(value)}" for key, value in origin.items() if value]


def _read_on(windows: Sequence[Mapping[str, Any]], tool: str, *, is_full: bool) -> list[str]:
    """Write how to read on where a field is only begun; a further field is named only."""
    args = windows[0]["read"]["args"]
    keys = ("offset_chars", "limit_chars") if is_full else ("offset_chars",)
    also = [f"also={name(window['field_path'])}" for window in windows[1:]] if is_full else []
    called = [f"read={tool}"] if is_full else []
    return ["complete=false", *called, *(f"{key}={args[key]}" for key in keys if key in args), *also]


def _embeds(result: Mapping[str, Any]) -> bool:
    return str(result["id"]).startswith((f"{result['connection_id']}/", "pdpp://record/"))
