"""The text of a window: a line of JSON with its place, lines to copy for going on, then the words in a fence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.text.ladder import READ_TOOL
from headgate.text.writing import fenced, json_text


@dataclass(frozen=True, slots=True)
class WindowText:
    """One window of one field, as its text shows it."""

    id: str
    field_path: str
    text: str
    start_chars: int
    end_chars: int
    total_chars: int | None
    complete: bool
    #: The arguments that select the neighbours, besides id and field_path; None at an end.
    next: Mapping[str, Any] | None
    previous: Mapping[str, Any] | None
    match: tuple[int, int] | None = None
    next_uri: str | None = None
    previous_uri: str | None = None


def window_text(window: WindowText, *, with_uris: bool = False) -> str:
    """Write the text of a window; the URIs of its neighbours are for clients that read by URI."""
    uris = {"next_uri": window.next_uri, "previous_uri": window.previous_uri} if with_uris else {}
    lines = [json_text(_header(window) | {label: uri for label, uri in uris.items() if uri is not None})]
    for label, selector in (("next", window.next), ("previous", window.previous)):
        if selector is not None:
            args = {"id": window.id, "field_path": window.field_path, **selector}
            lines.append(f"{label} {READ_TOOL} args={json_text(args)}")
    return "\n".join([*lines, fenced(window.text)])


def _header(window: WindowText) -> dict[str, Any]:
    header: dict[str, Any] = {
        "id": window.id,
        "field_path": window.field_path,
        "chars": [window.start_chars, window.end_chars],
        "total_chars": window.total_chars,
        "complete": window.complete,
    }
    if window.match is not None:
        header["match_chars"] = list(window.match)
    for label, selector in (("next_cursor", window.next), ("previous_cursor", window.previous)):
        if selector is not None and "cursor" in selector:
            header[label] = selector["cursor"]
    return header
