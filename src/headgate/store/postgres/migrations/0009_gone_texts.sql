-- Texts that left the word index and are not noted in their segments yet: those of a record in segments up to a number.
CREATE TABLE word_gone(
  home int, sid int, fid int, number bigint, last_gid bigint NOT NULL, PRIMARY KEY(home, sid, fid, number));
