-- The owner's rules on what no client ever sees; the documents are those of headgate.model.hiding.
CREATE TABLE hiding_rule(
  id TEXT PRIMARY KEY, document BLOB NOT NULL, created_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Records that a rule hides lie on a separate shelf: what clients read never comes near them. It is made when the
-- first of them comes in, so its number is always larger than that of the shelf for the others.
CREATE TABLE shelf_with_hidden(
  sid INTEGER PRIMARY KEY AUTOINCREMENT, connection_id TEXT NOT NULL, stid INTEGER NOT NULL,
  next_n INTEGER NOT NULL DEFAULT 1,
  live INTEGER NOT NULL DEFAULT 0,        -- exact count, kept by the writer
  seq INTEGER NOT NULL DEFAULT 0,         -- last change: what caches are checked against
  col_seq INTEGER NOT NULL DEFAULT 0,     -- column blocks hold the state as of this change
  updated_at INTEGER,
  hidden INTEGER NOT NULL DEFAULT 0,
  UNIQUE(connection_id, stid, hidden)) STRICT;
INSERT INTO shelf_with_hidden(sid, connection_id, stid, next_n, live, seq, col_seq, updated_at)
SELECT sid, connection_id, stid, next_n, live, seq, col_seq, updated_at FROM shelf;
-- The number of a shelf that is gone must not be given again.
DELETE FROM sqlite_sequence WHERE name='shelf_with_hidden';
INSERT INTO sqlite_sequence SELECT 'shelf_with_hidden', seq FROM sqlite_sequence WHERE name='shelf';
DROP TABLE shelf;
ALTER TABLE shelf_with_hidden RENAME TO shelf;
