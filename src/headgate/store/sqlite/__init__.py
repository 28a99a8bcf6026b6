"""SQLite: connections to a home's file, its dialect, its schema, and the files beside it."""

from __future__ import annotations

#: The file of a home's store.
FILE = "records.db"
#: The directory of files that records refer to.
BLOBS = "blobs"
