"""The text of a search: the first id before anything else, then sources, evidence and the top hits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from headgate.model.wire import HitBody, SearchBody
from headgate.text.budget import SEARCH_TEXT, Line, compose, cut
from headgate.text.marks import cut_marked
from headgate.text.quote import json_text, name
from headgate.text.records import paging_line

_SHOWN = 3
_EVIDENCE = 2
_MIX = 8
_SNIPPET_CHARS = 96
_TITLE_CHARS = 80
_NAME_CHARS = 60
_CLOSING = (
    "To open a hit call fetch with its printed id unchanged; "
    "add connection_id only where a line prints it on its own."
)


def search_text(body: SearchBody, results: Sequence[Mapping[str, Any]]) -> str:
    """Write the text of a search from its body and its flat results."""
    lines = [Line(f"search: {len(results)} hit(s). {paging_line(body)}")]
    if not results:
        lines.append(Line("Nothing matched. Try fewer or other words, or a beginning* with a star.", 1))
        return compose([*lines, *_recall(body)], SEARCH_TEXT)
    lines.append(Line(f"first_fetch_id={results[0]['id']}"))
    hits = body.get("data", [])
    lines += [*_mix(hits), *_recall(body)]
    shown = list(zip(results[:_SHOWN], hits, strict=False))
    evidence = [line for position, pair in enumerate(shown) for line in _evidence(position, *pair)]
    lines += [Line("Evidence excerpts:", 3), *evidence] if evidence else []
    lines += [Line("Top results:", 1)]
    lines += [_hit(position, *pair) for position, pair in enumerate(shown)]
    if len(results) > _SHOWN:
        lines.append(Line(_more(len(results) - _SHOWN), 2))
    lines.append(Line(_CLOSING, 1))
    return compose(lines, SEARCH_TEXT)


def _more(left: int) -> str:
    return f"more_results={left} not printed; to see each, search with limit={_SHOWN} and go on with cursor."


def source_mix(hits: Sequence[HitBody]) -> list[dict[str, Any]]:
    """Count the hits of each connection, in the order in which they first appear."""
    counts = Counter(str(hit.get("connection_id")) for hit in hits)
    first = {str(hit.get("connection_id")): hit for hit in reversed(hits)}
    return [
        {
            "connection_id": connection,
            "connector_key": first[connection].get("connector_key"),
            **({"display_name": label} if (label := first[connection].get("display_name")) else {}),
            "count": count,
        }
        for connection, count in counts.items()
    ]


def _mix(hits: Sequence[HitBody]) -> list[Line]:
    mix = source_mix(hits)
    if len(mix) < 2:  # noqa: PLR2004 - one source is no mix
        return []
    entries = "|".join(
        "{" + ",".join(f"{key}:{_label(value)}" for key, value in entry.items()) + "}" for entry in mix[:_MIX]
    )
    more = f"|more:{len(mix) - _MIX}" if len(mix) > _MIX else ""
    return [Line(f"source_mix={entries}{more}", 3)]


def _label(value: Any) -> str:
    return name(cut(value, _NAME_CHARS)) if isinstance(value, str) else json_text(value)


def _recall(body: SearchBody) -> list[Line]:
    recall = (body.get("meta") or {}).get("recall") or {}
    is_window = recall.get("ranking_scope") == "candidate_window"
    if recall.get("complete", True) and not recall.get("truncated") and not is_window:
        return []
    ranked = recall.get("ranked_candidate_count")
    which = f"only {ranked} matches were" if isinstance(ranked, int) else "not every match was"
    return [Line(f"Recall: {which} ranked; narrow the search to rank them all.", 4)]


def _snippet_of(hit: HitBody) -> str:
    snippet = hit.get("snippet")
    return str(snippet.get("text") or "") if isinstance(snippet, dict) else ""


def _words_around(hit: HitBody, path: str) -> str:
    """Give the excerpt of a field; without an own text it is the hit's snippet."""
    excerpts = hit.get("evidence_excerpts") or []
    own = (excerpt.get("preview_text") for excerpt in excerpts if excerpt.get("field_path") == path)
    return str(next(own, None) or _snippet_of(hit))


def _evidence(position: int, result: Mapping[str, Any], hit: HitBody) -> list[Line]:
    windows: Sequence[Mapping[str, Any]] = result.get("match_windows", ())
    return [
        Line(_excerpt(position, result["id"], window, _words_around(hit, window["field_path"])), 4 + position)
        for window in windows[:_EVIDENCE]
    ]


def _excerpt(position: int, record_id: str, window: Mapping[str, Any], snippet: str) -> str:
    args = window["read"]["args"]
    facts = [
        f"result={position + 1}",
        f"field_path={name(window['field_path'])}",
        f"snippet={_snippet(snippet)}",
        f"complete={json_text(window['complete'])}",
        f"read={window['read']['tool']}",
        *(f"{key}={args[key]}" for key in ("offset_chars", "limit_chars") if key in args),
        f"id={record_id}",
    ]
    return " ".join(facts)


def _snippet(text: str) -> str:
    return json_text(cut_marked(text, _SNIPPET_CHARS))


def _hit(position: int, result: Mapping[str, Any], hit: HitBody) -> Line:
    origin = {"connector_key": hit.get("connector_key"), "stream": hit.get("stream")}
    facts = [f"{key}={_label(value)}" for key, value in origin.items() if value is not None]
    facts.append(f"title={json_text(cut(result['title'], _TITLE_CHARS))}")
    if label := hit.get("display_name"):
        facts.append(f"display_name={_label(label)}")
    snippet = _snippet_of(hit)
    if snippet and not result.get("match_windows"):
        facts.append(f"snippet={_snippet(snippet)}")
    if result.get("connection_id") and not _embeds(result):
        facts.append(f"connection_id={_label(result['connection_id'])}")
    return Line(f"{position + 1}. {' '.join(facts)} id={result['id']}", 2)


def _embeds(result: Mapping[str, Any]) -> bool:
    return str(result["id"]).startswith((f"{result['connection_id']}/", "pdpp://record/"))
