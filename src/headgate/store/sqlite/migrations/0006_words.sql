-- The word index: segments of the texts of one field of one shelf, so that a search reads nothing outside its reach.
-- It is filled when the store is next opened for writing (write/word_index.py), in portions.
-- numbers, times, lengths: a column each of the segment's texts. firsts, bounds: the directory of its leaves.
-- dead: the texts that have left, two bytes each; NULL: none.
CREATE TABLE word_segment(
  gid INTEGER PRIMARY KEY AUTOINCREMENT, sid INTEGER NOT NULL, fid INTEGER NOT NULL,
  text_count INTEGER NOT NULL, occurrence_count INTEGER NOT NULL, languages INTEGER NOT NULL, dead BLOB,
  firsts BLOB NOT NULL, bounds BLOB NOT NULL, numbers BLOB NOT NULL, times BLOB NOT NULL, lengths BLOB NOT NULL
) STRICT;
CREATE INDEX word_segment_field ON word_segment(sid, fid);

CREATE TABLE word_leaf(
  lid INTEGER PRIMARY KEY,                -- gid << 24 | number of the leaf in its segment
  words BLOB NOT NULL, crc INTEGER NOT NULL, counts BLOB NOT NULL, occurrences BLOB NOT NULL) STRICT;

-- How far the index is filled: every record up to this row number is in it.
INSERT INTO meta VALUES('words_filled', 0);
UPDATE meta SET v=0 WHERE k='words';
DROP TABLE fts;
