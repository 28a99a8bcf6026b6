"""Where a store lies in its home."""

from __future__ import annotations

#: The SQLite file.
FILE = "records.db"
#: The directory of files that records refer to.
BLOBS = "blobs"
