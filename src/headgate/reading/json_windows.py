"""Windows into objects and lists, for a resource server that has none: cut from the JSON of the whole value."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from headgate.errors import QueryNotFound
from headgate.model.ids import ConnectionId
from headgate.model.plan import MatchWindow, OffsetWindow
from headgate.model.rows import FieldWindow
from headgate.store.snippets import find_folded


def part_of_json(
    value: dict[str, Any] | list[Any], window: OffsetWindow | MatchWindow, connection_id: ConnectionId
) -> FieldWindow:
    """Cut a window of a value's JSON text.

    Raises:
        QueryNotFound: the text sought does not occur in it.
    """
    text = msgspec.json.encode(value).decode()
    match = None, None
    if isinstance(window, OffsetWindow):
        start = min(window.offset_chars, len(text))
    else:
        found = find_folded([text], window.q)
        if found is None:
            raise QueryNotFound
        match = found
        start = max(0, found[0] - window.before_chars)
    part = text[start : start + window.limit_chars]
    digest = hashlib.sha256(text.encode()).hexdigest()
    return FieldWindow(connection_id, part, start, len(text), digest, *match, is_json=True)
