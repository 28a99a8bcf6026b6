-- The owner's password as an argon2id hash, and the link by which one is set. At most one row.
CREATE TABLE owner(
  id INTEGER PRIMARY KEY CHECK (id = 1), password TEXT, link BLOB, link_ends_at INTEGER) STRICT;

-- What browsers hold: a session, or the mark of a browser that the owner signed in with. Known by its SHA-256 alone.
CREATE TABLE owner_browser(
  digest BLOB PRIMARY KEY, kind TEXT NOT NULL, made_at INTEGER NOT NULL, used_at INTEGER NOT NULL,
  proved_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- What the owner calls a token, and what it may be used for; NULL is everything.
ALTER TABLE token ADD COLUMN name TEXT;
ALTER TABLE token ADD COLUMN scope TEXT;
