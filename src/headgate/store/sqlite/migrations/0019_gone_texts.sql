-- Texts that left the word index and are not noted in their segments yet: those of a record in segments up to a number.
CREATE TABLE word_gone(
  sid INTEGER NOT NULL, fid INTEGER NOT NULL, number INTEGER NOT NULL, last_gid INTEGER NOT NULL,
  PRIMARY KEY(sid, fid, number)) STRICT, WITHOUT ROWID;
