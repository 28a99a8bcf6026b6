"""What a copy of a store consists of: which tables, their keys, and how each of them changes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class CopyMode(Enum):
    """How a table changes, which decides how a copy that was stopped goes on."""

    #: It is small: copied whole each time.
    WHOLE = auto()
    #: A change of it changes a number that the copy notes: copied in portions, anew if that number changed.
    RESTART_IF_CHANGED = auto()
    #: It only grows, by larger keys: a copy goes on after the last one.
    APPEND = auto()


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is copied row by row. Its columns are those that both stores have."""

    name: str
    key: tuple[str, ...]
    mode: CopyMode = CopyMode.WHOLE


#: Typed values, the bytes of files and the numbers in ``meta`` are copied by other means.
TABLES = (
    Table("declaration", ("connector_key", "version")),
    Table("connection", ("id",)),
    Table("connection_gone", ("digest",)),
    Table("stream", ("stid",)),
    Table("field", ("stid", "fid")),
    Table("shelf", ("sid",)),
    Table("shelf_time", ("sid", "fid")),
    Table("hiding_rule", ("id",)),
    Table("change_day", ("day",)),
    Table("vector_shelf", ("sid",)),
    Table("idempotency", ("key",)),
    Table("blob_gone", ("blob_id",)),
    Table("record", ("rid",), CopyMode.RESTART_IF_CHANGED),
    Table("life", ("rid", "seq"), CopyMode.RESTART_IF_CHANGED),
    Table("chunk", ("rid", "fid", "n"), CopyMode.RESTART_IF_CHANGED),
    Table("invalid", ("rid", "pointer"), CopyMode.RESTART_IF_CHANGED),
    Table("blob", ("blob_id",), CopyMode.RESTART_IF_CHANGED),
    Table("blob_use", ("blob_id", "rid", "fid"), CopyMode.RESTART_IF_CHANGED),
    Table("word_segment", ("gid",), CopyMode.RESTART_IF_CHANGED),
    Table("word_leaf", ("lid",), CopyMode.RESTART_IF_CHANGED),
    Table("word_gone", ("sid", "fid", "number")),
    Table("vector_block", ("bid",), CopyMode.RESTART_IF_CHANGED),
    Table("vector_stale", ("rid", "fid"), CopyMode.RESTART_IF_CHANGED),
    Table("grant_issued", ("id",)),
    Table("token", ("digest",)),
    Table("audit", ("seq",), CopyMode.APPEND),
    Table("audit_pruned", ("last",), CopyMode.APPEND),
    Table("audit_journal", ("name",)),
    Table("spent", ("grant_id", "day")),
    Table("owner", ("id",)),
    Table("owner_browser", ("digest",)),
    Table("owner_passkey", ("id",)),
    Table("owner_challenge", ("digest",)),
    Table("oauth_entry", ("kind", "key")),
)
#: Facts in ``meta`` that mean the same in every engine.
FACTS = ("seq", "pruned_seq", "catalog", "words", "words_filled")
