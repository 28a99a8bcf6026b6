"""Where the text of a schema goes on: a text holds only so many streams, sources, connections and fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from headgate.text.quote import json_text

_CURSOR = re.compile(r"(streams|sources|(?:connections|fields):(\d{1,5})):(\d{1,6})")
_List = Literal["streams", "sources", "connections", "fields"]


class SchemaPlace(NamedTuple):
    """A place in one of the lists of a schema."""

    list: _List
    first: int
    #: The source that the connections or the fields are of.
    source: int = 0

    def write(self) -> str:
        """Write it as a cursor."""
        where = f"{self.list}:{self.source}" if self.list in {"connections", "fields"} else self.list
        return f"{where}:{self.first}"

    def call(self, asked: Mapping[str, str]) -> str:
        """Write the call that goes on here, with the arguments of the call that began."""
        return f"schema args={json_text({**asked, 'cursor': self.write()})}"


def read_schema_place(cursor: str) -> SchemaPlace | None:
    """Read a cursor; None if it is none of these."""
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        return None
    return SchemaPlace(cast("_List", found[1].partition(":")[0]), int(found[3]), int(found[2] or 0))
