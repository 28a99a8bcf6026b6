-- Facts about the whole store: seq (last change number), pruned_seq (changes up to here are forgotten),
-- catalog (raised whenever connections, declarations or shelves change), words (how text is cut).
CREATE TABLE meta(k TEXT PRIMARY KEY, v ANY NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE declaration(
  connector_key TEXT NOT NULL, version TEXT NOT NULL, position INTEGER NOT NULL, document BLOB NOT NULL,
  PRIMARY KEY(connector_key, version)) STRICT, WITHOUT ROWID;

CREATE TABLE connection(
  id TEXT PRIMARY KEY, connector_key TEXT NOT NULL, display_name TEXT NOT NULL, created_at INTEGER NOT NULL,
  state BLOB) STRICT, WITHOUT ROWID;

-- A stream of a connector. Its typed table is t<stid>; its columns are named by number, never by outsiders.
CREATE TABLE stream(
  stid INTEGER PRIMARY KEY, connector_key TEXT NOT NULL, name TEXT NOT NULL,
  UNIQUE(connector_key, name)) STRICT;

-- fid: the field for good. col: its column c<col> in the typed table, if values compare, and kind: how that
-- column holds them. slot: its column in the full-text index, if it is searched.
CREATE TABLE field(
  stid INTEGER NOT NULL, name TEXT NOT NULL, fid INTEGER NOT NULL, col INTEGER, kind TEXT, slot INTEGER,
  PRIMARY KEY(stid, name)) STRICT, WITHOUT ROWID;

-- A shelf is one stream of one connection: the unit of grants, of clustering and of change.
CREATE TABLE shelf(
  sid INTEGER PRIMARY KEY AUTOINCREMENT, connection_id TEXT NOT NULL, stid INTEGER NOT NULL,
  next_n INTEGER NOT NULL DEFAULT 1,
  live INTEGER NOT NULL DEFAULT 0,        -- exact count, kept by the writer
  seq INTEGER NOT NULL DEFAULT 0,         -- last change: what caches are checked against
  col_seq INTEGER NOT NULL DEFAULT 0,     -- column blocks hold the state as of this change
  updated_at INTEGER,
  UNIQUE(connection_id, stid)) STRICT;

CREATE TABLE record(
  rid INTEGER PRIMARY KEY,                -- sid << 40 | n
  sid INTEGER NOT NULL, record_id TEXT NOT NULL,
  seq INTEGER NOT NULL,                   -- change number, new at every change
  born_seq INTEGER NOT NULL,              -- change number of its first appearance
  sort ANY,                               -- the cursor field's value: what pages are ordered by
  ts INTEGER,                             -- the stream's time in microseconds, if it has one
  emitted_at INTEGER NOT NULL, deleted INTEGER NOT NULL DEFAULT 0,
  changed BLOB,                           -- msgpack {field: seq of its last change}; NULL: all at born_seq
  long BLOB,                              -- msgpack {field: [chars, sha256]} of texts kept in chunks; NULL: none
  digest BLOB NOT NULL,                   -- sha256 over key, long and body
  body BLOB                               -- the JSON text without long texts; NULL for a tombstone
) STRICT;
CREATE UNIQUE INDEX record_key ON record(sid, record_id);
CREATE INDEX record_seq ON record(sid, seq);
CREATE INDEX record_sort ON record(sid, sort, record_id) WHERE deleted = 0;

-- What a record was before a change that moved it in or out of somebody's scope: deletion, return, another time; and when that came in.
CREATE TABLE life(
  rid INTEGER NOT NULL, seq INTEGER NOT NULL, was_live INTEGER NOT NULL, was_ts INTEGER, at INTEGER NOT NULL,
  PRIMARY KEY(rid, seq)) STRICT, WITHOUT ROWID;

-- Long texts, 8192 characters a chunk, so that a window is found by arithmetic.
CREATE TABLE chunk(
  rid INTEGER NOT NULL, fid INTEGER NOT NULL, n INTEGER NOT NULL, sum BLOB NOT NULL, text TEXT NOT NULL,
  UNIQUE(rid, fid, n)) STRICT;

CREATE TABLE column_block(
  sid INTEGER NOT NULL, fid INTEGER NOT NULL, b INTEGER NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY(sid, fid, b)) STRICT;

CREATE TABLE blob(
  blob_id TEXT PRIMARY KEY, mime_type TEXT NOT NULL, size_bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE blob_use(
  blob_id TEXT NOT NULL, rid INTEGER NOT NULL, fid INTEGER NOT NULL, mime_type TEXT,
  PRIMARY KEY(blob_id, rid, fid)) STRICT, WITHOUT ROWID;
CREATE INDEX blob_use_rid ON blob_use(rid);

CREATE TABLE idempotency(
  key TEXT PRIMARY KEY, digest BLOB NOT NULL, report BLOB NOT NULL, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Columns are field slots, so that a query names the fields it may match; sh holds the shelf and stream.
-- Plain contentless: its deletes can be made secure, which those of contentless_delete cannot.
CREATE VIRTUAL TABLE fts USING fts5(
  c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15,
  c16, c17, c18, c19, c20, c21, c22, c23, sh,
  content='', columnsize=0, detail=full,
  tokenize="unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'");
INSERT INTO fts(fts, rank) VALUES('hashsize', 33554432), ('automerge', 4), ('crisismerge', 16), ('pgsz', 8000);

INSERT INTO meta VALUES('seq', 0), ('pruned_seq', 0), ('catalog', 1), ('words', 1);
