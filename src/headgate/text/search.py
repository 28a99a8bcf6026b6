"""Say what a search found: the first id before anything else, then sources, evidence and the top hits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from headgate.text.budget import SEARCH_TEXT, Line, compose, cut
from headgate.text.ladder import READ_TOOL
from headgate.text.marks import cut_marked
from headgate.text.quote import json_text, name
from headgate.text.records import handles_of

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


def search_text(body: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> str:
    """Draw the text of a search from its body and its flattened results."""
    lines = [Line(f"search: {len(results)} hit(s). {handles_of(body)}")]
    if not results:
        lines.append(Line("Nothing matched. Try fewer or other words, or a beginning* with a star.", 1))
        return compose([*lines, *_recall(body)], SEARCH_TEXT)
    lines.append(Line(f"first_fetch_id={results[0]['id']}"))
    lines += [*_mix(results), *_recall(body)]
    shown = results[:_SHOWN]
    evidence = [line for position, result in enumerate(shown) for line in _evidence(position, result)]
    lines += [Line("Evidence excerpts:", 3), *evidence] if evidence else []
    lines += [Line("Top results:", 1)]
    lines += [_hit(position, result) for position, result in enumerate(shown)]
    if len(results) > _SHOWN:
        lines.append(Line(f"more_results={len(results) - _SHOWN}; narrow with streams or limit.", 2))
    lines.append(Line(_CLOSING, 1))
    return compose(lines, SEARCH_TEXT)


def source_mix(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Count the hits of each connection, in the order in which they first appear."""
    counts = Counter(str(result.get("connection_id")) for result in results)
    first = {str(result.get("connection_id")): result for result in reversed(results)}
    return [
        {
            "connection_id": connection,
            "connector_key": first[connection].get("connector_key"),
            **({"display_name": label} if (label := first[connection].get("display_name")) else {}),
            "count": count,
        }
        for connection, count in counts.items()
    ]


def _mix(results: Sequence[Mapping[str, Any]]) -> list[Line]:
    mix = source_mix(results)
    if len(mix) < 2:  # noqa: PLR2004 - one source is no mix
        return []
    entries = "|".join(
        "{" + ",".join(f"{key}:{_label(value)}" for key, value in entry.items()) + "}" for entry in mix[:_MIX]
    )
    more = f"|more:{len(mix) - _MIX}" if len(mix) > _MIX else ""
    return [Line(f"source_mix={entries}{more}", 3)]


def _label(value: Any) -> str:
    return name(cut(value, _NAME_CHARS)) if isinstance(value, str) else json_text(value)


def _recall(body: Mapping[str, Any]) -> list[Line]:
    meta = cast("Mapping[str, Any]", body.get("meta") or {})
    recall = cast("Mapping[str, Any]", meta.get("recall") or {})
    if recall.get("complete", True) and not recall.get("truncated"):
        return []
    ranked = recall.get("ranked_candidate_count")
    which = f"only {ranked} matches were" if isinstance(ranked, int) else "not every match was"
    return [Line(f"Recall: {which} ranked; narrow the search to rank them all.", 4)]


def _evidence(position: int, result: Mapping[str, Any]) -> list[Line]:
    windows = cast("Sequence[Mapping[str, Any]]", result.get("match_windows", ()))
    return [Line(_excerpt(position, result, window), 4 + position) for window in windows[:_EVIDENCE]]


def _excerpt(position: int, result: Mapping[str, Any], window: Mapping[str, Any]) -> str:
    args = window["read"]["args"]
    facts = [
        f"result={position + 1}",
        f"field_path={name(window['field_path'])}",
        f"snippet={_snippet(window.get('text') or result.get('snippet') or '')}",
        f"complete={json_text(window['complete'])}",
        f"read={READ_TOOL}",
        *(f"{key}={args[key]}" for key in ("offset_chars", "limit_chars") if key in args),
        f"id={result['id']}",
    ]
    return " ".join(facts)


def _snippet(text: str) -> str:
    return json_text(cut_marked(text, _SNIPPET_CHARS))


def _hit(position: int, result: Mapping[str, Any]) -> Line:
    facts = [
        f"{key}={_label(result[key])}" for key in ("connector_key", "stream") if result.get(key) is not None
    ]
    facts.append(f"title={json_text(cut(result['title'], _TITLE_CHARS))}")
    if result.get("display_name"):
        facts.append(f"display_name={_label(result['display_name'])}")
    if result.get("snippet") and not result.get("match_windows"):
        facts.append(f"snippet={_snippet(result['snippet'])}")
    if result.get("connection_id") and not _embeds(result):
        facts.append(f"connection_id={_label(result['connection_id'])}")
    return Line(f"{position + 1}. {' '.join(facts)} id={result['id']}", 2)


def _embeds(result: Mapping[str, Any]) -> bool:
    return str(result["id"]).startswith((f"{result['connection_id']}/", "pdpp://record/"))
