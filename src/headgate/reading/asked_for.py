"""What a refused read asked for, for the log: names that the home has, and nothing else that a caller wrote."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headgate.audit.journal import AskedFor
from headgate.model.ids import FieldName, StreamName
from headgate.policy.allowance import SourceCatalog


def asked_for(catalog: SourceCatalog, query: object) -> AskedFor | None:
    """Return the streams, the connection and the fields that a query names, if the home has them."""
    wanted: Any = query
    named: tuple[Any, ...] = (getattr(wanted, "stream", None), *(getattr(wanted, "streams", None) or ()))
    declared = {
        name: stream for source in catalog.declarations.values() for name, stream in source.streams.items()
    }
    streams = tuple(StreamName(name) for name in dict.fromkeys(named) if name in declared)
    fields = {name for stream in streams for name in declared[stream].fields}
    connection = getattr(wanted, "connection_id", None)
    asked = AskedFor(
        streams,
        connection if connection in catalog.connections else None,
        tuple(dict.fromkeys(name for name in _fields(wanted) if name in fields)),
    )
    return None if asked == AskedFor() else asked


def _fields(query: Any) -> Iterable[FieldName]:
    yield from getattr(query, "fields", None) or ()
    yield from (chosen.field for chosen in getattr(query, "filters", None) or ())
    single = getattr(query, "field", None)
    if single is not None:
        yield single
