-- The last change number of each day on which something was written: how old a change number is. Days since 1970.
CREATE TABLE change_day(day INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;

-- Files that no record refers to any more and that are still to be removed from the disk.
CREATE TABLE blob_gone(blob_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
