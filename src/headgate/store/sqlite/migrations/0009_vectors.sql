-- The vectors of search by meaning: blocks of the passages of one field of one shelf, so that a search reads nothing
-- outside its reach. They are made in the background (write/vector_thread.py), by the model that the owner has chosen.

-- A block holds the passages of the records with one part of the numbers. A row a passage: the record's number and time,
-- where the passage starts and ends in the text, and its vector. A block never changes; another takes its place.
CREATE TABLE vector_block(
  bid INTEGER PRIMARY KEY AUTOINCREMENT, sid INTEGER NOT NULL, fid INTEGER NOT NULL, part INTEGER NOT NULL,
  crc INTEGER NOT NULL, numbers BLOB NOT NULL, times BLOB NOT NULL, starts BLOB NOT NULL, ends BLOB NOT NULL,
  vectors BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX vector_block_part ON vector_block(sid, fid, part);

-- By which model, and of which fields, the vectors of a shelf are made, and up to which number of its records.
CREATE TABLE vector_shelf(
  sid INTEGER PRIMARY KEY, model TEXT NOT NULL, fids TEXT NOT NULL, filled INTEGER NOT NULL) STRICT;

-- Texts that changed or left after their vectors were made: these are no longer compared, and are made anew.
CREATE TABLE vector_stale(rid INTEGER NOT NULL, fid INTEGER NOT NULL, PRIMARY KEY(rid, fid)) STRICT, WITHOUT ROWID;
