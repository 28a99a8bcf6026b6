"""The text of a search: what was found of the words, the sources, and each hit as the line of its record."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from headgate.model.wire import (
    AggregateBody,
    AggregateMeta,
    AskedBody,
    HitBody,
    LineBody,
    SearchBody,
    SearchMeta,
    UnderstoodBody,
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
    minute,
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


def unmarked(text: str) -> str:
    """Leave out the tags around matches."""
    return _TAG.sub("", text)


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


_JOINT = " · "
#: What the text of a record is usually called.
_TEXTS = frozenset({"body", "text", "content"})
_DAY_CHARS = len("2025-12-31")
_MIX = 8
_MIX_BYTES = 400
_NAME_CHARS = 60
_LABEL_BYTES = 40
_UNDERSTOOD_CHARS = 600
#: How much of a hit is printed, from the most to the least: the bytes of each part of its line, and the characters of
#: its snippet. With the least, of the line only the title is printed.
_LEVELS = ((720, 480), (240, 96), (120, 48), (120, 24), (60, 0), (24, 0))
_LEAST = _LEVELS[-1]
_CLOSING = "fetch(id) opens a record; add connection_id only where a line prints it."
#: How a search found its hits that was by words and meaning, or until that is complete by words.
_FOUND_BY = {"hybrid": " by words and meaning", "lexical": " by words"}
_ALIKE = " collapse=false shows alike hits one by one."


def search_text(
    body: SearchBody,
    results: Sequence[Mapping[str, Any]],
    *,
    cursor: str | None = None,
    tool: str = READ_TOOL,
) -> str:
    """Write the text of a search from its body and its flat results; ``cursor`` is the one it was asked with."""
    found_by = _FOUND_BY.get((body.get("meta") or {}).get("mode", ""), "")
    lines = [
        f"search: {len(results)} hit(s){found_by}{_ended(body)}. {paging_line(body)}",
        *understood_line(body),
    ]
    if not results and (body.get("meta") or {}).get("count"):
        lines.append("Counted only, as limit is 0. Pass a limit to see hits.")
        return "\n".join([*lines, *_recall(body)])
    if not results:
        lines.append("Nothing matched. Try fewer or other words, or a beginning* with a star.")
        return "\n".join([*lines, *_recall(body)])
    hits = body.get("data", [])
    lines += [*_mix(hits), *_recall(body)]
    closing = _closing(hits, results, tool)
    space = SEARCH_TEXT - sum(size(line) + 1 for line in lines)
    space -= size(closing + rest_hint(len(results), len(results), cursor))

    def draw(position: int, entry: tuple[Mapping[str, Any], HitBody], limit_bytes: int) -> str:
        result, hit = entry
        return _hit(_PrintedHit(position, result, hit, balanced(_snippet_of(hit))), limit_bytes)

    printed = shared_lines(zip(results, hits, strict=False), len(results), space, draw)
    left = len(results) - len(printed)
    rest = rest_hint(left, len(printed), cursor) if left else ""
    return "\n".join([*lines, *printed, closing + rest]).rstrip()


def _ended(body: SearchBody) -> str:
    """Say why a page ended before its limit, where all that is left lacks words."""
    meta: SearchMeta = body.get("meta") or {}
    hits = body.get("data", [])
    partial, count = meta.get("partial_count"), meta.get("count")
    if not body.get("has_more") or not partial or not isinstance(count, int):
        return ""
    shown = len(hits) + sum(_alike_count(hit) for hit in hits)
    is_end = shown == count - partial - (meta.get("quoted_count") or 0)
    return " with all the words; the others lack some" if is_end else ""


def _alike_count(hit: HitBody) -> int:
    alike: Any = hit.get("alike")
    count: Any = cast("Mapping[str, Any]", alike).get("count") if isinstance(alike, dict) else 0
    return count if isinstance(count, int) else 0


def _closing(hits: Sequence[HitBody], results: Sequence[Mapping[str, Any]], tool: str) -> str:
    closing = _CLOSING
    if any(result.get("match_windows") for result in results):
        closing += f" [F: read from N]: {tool} with the id, field_path=F and offset_chars=N."
    return closing + (_ALIKE if any(hit.get("alike") for hit in hits) else "") + " "


def _connector(hit: HitBody) -> str | None:
    """Return the connector's key; other servers give it under its former name, or not at all."""
    return hit.get("connector_key") or hit.get("connector_id")


def _mix(hits: Sequence[HitBody]) -> list[str]:
    """Write which sources the hits are of, in their order: what each is called, its connector and how many are its own."""
    counts = Counter(str(hit.get("connection_id")) for hit in hits)
    first = {str(hit.get("connection_id")): hit for hit in reversed(hits)}
    written = (
        f"{_name(str(first[connection].get('display_name') or connection))} "
        f"({_name(_connector(first[connection]) or connection)}) {count}"
        for connection, count in list(counts.items())[:_MIX]
    )
    entries = fitting(written, _MIX_BYTES, len(_JOINT.encode()))
    more = [f"{len(counts) - len(entries)} more"] if len(counts) > len(entries) else []
    return [f"sources: {_JOINT.join([*entries, *more])}"]


@lru_cache(maxsize=1024)
def _name(text: str) -> str:
    """Write a name of a source, a stream or a field: nearly all hits of an answer have the same."""
    return name(cut(text, _NAME_CHARS))


def _recall(body: SearchBody) -> list[str]:
    recall = (body.get("meta") or {}).get("recall") or {}
    mode = (body.get("meta") or {}).get("mode")
    # Of two lists only the best are put together, whatever was asked.
    is_window = recall.get("ranking_scope") == "candidate_window" and mode != "hybrid"
    pending = recall.get("pending_count")
    # A search that went by words until vectors are complete lacks nothing that it looked for.
    is_complete = recall.get("complete", True) or (bool(pending) and mode == "lexical")
    if is_complete and not recall.get("truncated") and not is_window:
        return []
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
    parts += asked_parts(understood)
    count, partial, quoted = meta.get("count"), meta.get("partial_count") or 0, meta.get("quoted_count") or 0
    if isinstance(count, int):
        matched = [f"{count - partial - quoted} matched all", *([f"{partial} some"] if partial else [])]
        matched += [f"{quoted} more only in quoted text"] if quoted else []
        parts.append(", ".join(matched))
    elif isinstance(whole := meta.get("matched_all"), int):
        parts.append(f"{whole} matched all")
    return [cut("; ".join(parts), _UNDERSTOOD_CHARS)]


def asked_parts(understood: UnderstoodBody) -> list[str]:
    """Write what of a query was taken for days, a sender or an order, and what of that was not used."""
    asked = [_asked(phrase) for phrase in understood.get("asked") or []]
    not_used = [_asked(phrase) for phrase in understood.get("not_used") or []]
    parts = [f"taken as: {', '.join(asked)} (understand=false: as words)"] if asked else []
    return parts + ([f"not used, as nothing fits: {', '.join(not_used)}"] if not_used else [])


def _asked(phrase: AskedBody) -> str:
    text = name(cut(str(phrase.get("phrase")), _NAME_CHARS))
    days = [
        f"{name(str(each.get('first') or ''))}..{name(str(each.get('last') or ''))}"
        for each in phrase.get("days") or []
    ]
    meant = [*days, *([f"sender {name(str(phrase.get('sender')))}"] if phrase.get("sender") else [])]
    meant += ["newest first"] if phrase.get("sort") else []
    meant += [f"asks {name(str(phrase.get('asks')))}"] if phrase.get("asks") else []
    return f"{text} = {' or '.join(meant)}"


def _word(understood: UnderstoodWordBody) -> str:
    """Write a word of the query: how many records hold it, and what was taken for it."""
    text = name(cut(str(understood.get("word")), _NAME_CHARS))
    count, quoted = understood.get("count"), understood.get("quoted_count")
    held = f" {count}" if isinstance(count, int) else ""
    held += f" +{quoted} quoted" if isinstance(quoted, int) and quoted else ""
    if understood.get("corrected_to"):
        return f"{text} 0 (taken for {_listed(understood.get('corrected_to'))}{held})"
    text += held
    alternatives = understood.get("alternatives")
    if isinstance(alternatives, dict):
        each = (f"{name(cut(str(word), _NAME_CHARS))} {number}" for word, number in alternatives.items())
        return f"{' OR '.join(each)}: together{held}"
    return f"{text} (also {_listed(understood.get('forms'))})" if understood.get("forms") else text


def _listed(words: Sequence[str] | None) -> str:
    return ", ".join(name(cut(str(word), _NAME_CHARS)) for word in words or ())


def _snippet_of(hit: HitBody) -> str:
    snippet = hit.get("snippet")
    return str(snippet.get("text") or "") if isinstance(snippet, dict) else ""


def _of_field(hit: HitBody) -> str:
    """Name the field that a snippet is of, unless it is the text of the record itself."""
    snippet = hit.get("snippet")
    field = snippet.get("field") if isinstance(snippet, dict) else None
    return "" if not isinstance(field, str) or field in _TEXTS else f"{_name(field)}: "


class _PrintedHit(NamedTuple):
    """What the lines of a hit are made of."""

    position: int
    result: Mapping[str, Any]
    hit: HitBody
    #: The words around the match, with all their marks.
    snippet: str


def _hit(printed: _PrintedHit, limit_bytes: int) -> str:
    """Write a hit: its line, the words around the match, and its id; as much of the first two as fits."""
    text = ""
    for level in _LEVELS:
        text = _written(printed, *level)
        if size(text) <= limit_bytes:
            break
    return text


def _written(printed: _PrintedHit, part_bytes: int, snippet_chars: int) -> str:
    result, hit = printed.result, printed.hit
    line = cast("LineBody", result)
    parts = line_facts(line, part_bytes, is_full=(part_bytes, snippet_chars) != _LEAST)
    parts.append(json_within(str(result["title"]), part_bytes))
    label = hit.get("display_name") or _connector(hit)
    if label:
        parts.append(json_within(str(label), min(part_bytes, _LABEL_BYTES)))
    if hit.get("missing"):
        parts.append(f"not: {json_within(', '.join(hit.get('missing') or ()), _LABEL_BYTES)}")
    if hit.get("found_by"):
        parts.append("by meaning")
    if hit.get("quoted"):
        parts.append("in quoted text")
    lines = [f"{printed.position + 1}. {_JOINT.join([*parts, *_alike(hit)])}"]
    evidence = _evidence(printed, snippet_chars)
    if evidence:
        lines.append(f"   {evidence}")
    return "\n".join([*lines, f"   {_id(result)}"])


def _evidence(printed: _PrintedHit, snippet_chars: int) -> str:
    """Write the words around a match, and the field and the place at which a text is cut."""
    words = ""
    if printed.snippet and snippet_chars:
        words = _of_field(printed.hit) + json_text(unmarked(cut_balanced(printed.snippet, snippet_chars)))
    windows: Sequence[Mapping[str, Any]] = printed.result.get("match_windows", ())
    return " ".join([*([words] if words else []), *map(_place, windows)])


def _place(window: Mapping[str, Any]) -> str:
    """Write from where on a text is read, and how long it is: "[body: read from 480 of 1240]"."""
    arguments = window["read"]["args"]
    size_chars = f" of {window['size_chars']}" if "size_chars" in window else ""
    return f"[{name(arguments['field_path'])}: read from {arguments.get('offset_chars', 0)}{size_chars}]"


def _id(result: Mapping[str, Any]) -> str:
    if _needs_connection(result):
        return f"id={result['id']} connection_id={name(str(result['connection_id']))}"
    return f"id={result['id']}"


def _needs_connection(result: Mapping[str, Any]) -> bool:
    """Return whether an id is not complete without the connection."""
    connection = result.get("connection_id")
    return bool(connection) and not str(result["id"]).startswith((f"{connection}/", "pdpp://record/"))


def _alike(hit: HitBody) -> list[str]:
    alike = hit.get("alike")
    if not isinstance(alike, dict):
        return []
    times = [minute(str(alike.get(end) or ""))[:_DAY_CHARS] for end in ("earliest", "latest")]
    return [f"{alike.get('count')} more alike" + (f", {times[0]} to {times[1]}" if all(times) else "")]
