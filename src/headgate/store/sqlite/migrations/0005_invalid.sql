-- Places where a record that is stored breaks its stream's schema. fid: the field, if its value cannot be read as the
-- type that it is compared by. Records from before this step have no rows: their unreadable values count as missing.
CREATE TABLE invalid(
  rid INTEGER NOT NULL, pointer TEXT NOT NULL, fid INTEGER, message TEXT NOT NULL,
  PRIMARY KEY(rid, pointer)) STRICT, WITHOUT ROWID;
