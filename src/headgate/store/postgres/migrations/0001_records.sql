-- Every table begins with the home: the person whose data it is. Every key and unique index begins with it too, so that
-- homes can be spread over partitions or machines. No sequences, triggers, extensions or session state.

CREATE TABLE home(home int PRIMARY KEY, name text COLLATE "C" NOT NULL);

-- Facts about one home, and the numbers that were given last: seq (change number), pruned_seq (changes up to here are
-- forgotten), catalog (raised whenever declarations, connections, shelves or rules change), version (raised by every
-- transaction that writes, which holds its row until it ends), words, words_filled; ledger and chain (the same for
-- grants and tokens, and for the chain of disclosures); sid, stid, gid, bid.
CREATE TABLE meta(home int, k text COLLATE "C", v bigint NOT NULL, PRIMARY KEY(home, k)) WITH (fillfactor = 50);

CREATE TABLE declaration(
  home int, connector_key text COLLATE "C", version text COLLATE "C", position bigint NOT NULL, document bytea NOT NULL,
  PRIMARY KEY(home, connector_key, version));

CREATE TABLE connection(
  home int, id text COLLATE "C", connector_key text COLLATE "C" NOT NULL, display_name text NOT NULL,
  created_at bigint NOT NULL, state bytea, PRIMARY KEY(home, id));

CREATE TABLE stream(
  home int, stid int, connector_key text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, PRIMARY KEY(home, stid));
CREATE UNIQUE INDEX stream_name ON stream(home, connector_key, name);

-- fid: the field for good. col: its place in the arrays of the typed values, if values compare, and kind: in which.
-- slot: set if its texts are in the word index.
CREATE TABLE field(
  home int, stid int, name text COLLATE "C", fid int NOT NULL, col int, kind text, slot int,
  PRIMARY KEY(home, stid, fid));
CREATE INDEX field_name ON field(home, stid);

-- A shelf is one stream of one connection: the unit of grants, of clustering and of change.
CREATE TABLE shelf(
  home int, sid int, connection_id text COLLATE "C" NOT NULL, stid int NOT NULL, next_n bigint NOT NULL DEFAULT 1,
  live bigint NOT NULL DEFAULT 0, seq bigint NOT NULL DEFAULT 0, col_seq bigint NOT NULL DEFAULT 0, updated_at bigint,
  hidden int NOT NULL DEFAULT 0, PRIMARY KEY(home, sid));
CREATE UNIQUE INDEX shelf_stream ON shelf(home, connection_id, stid, hidden);

CREATE TABLE shelf_time(home int, sid int, fid int, at bigint NOT NULL, PRIMARY KEY(home, sid, fid));

-- key: SHA-256 of record_id, because an index row holds at most 2,704 bytes. sort: the cursor field's value as bytes that
-- compare like it (dialect.py). The rest is as in SQLite.
CREATE TABLE record(
  home int, rid bigint, sid int NOT NULL, key bytea NOT NULL, record_id text COLLATE "C" NOT NULL, seq bigint NOT NULL,
  born_seq bigint NOT NULL, sort bytea, ts bigint, emitted_at bigint NOT NULL, deleted boolean NOT NULL DEFAULT false,
  changed bytea, long bytea, digest bytea NOT NULL, body bytea, PRIMARY KEY(home, rid));
CREATE UNIQUE INDEX record_key ON record(home, sid, key);
CREATE INDEX record_seq ON record(home, sid, seq);
CREATE INDEX record_sort ON record(home, sid, substr(sort, 1, 512), left(record_id, 256)) WHERE NOT deleted;
CREATE INDEX record_by_key ON record(home, sid, left(record_id, 256)) WHERE NOT deleted;

-- Typed values: the value of column n of a stream is the n-th element of the array for its kind.
CREATE TABLE typed(home int, rid bigint, ints bigint[], floats float8[], words text[] COLLATE "C", PRIMARY KEY(home, rid));

-- Typed values that hold the key of another record, so that children are found by their parent.
CREATE TABLE child_key(
  home int, stid int, col int, value bytea, rid bigint, PRIMARY KEY(home, stid, col, value, rid));
CREATE INDEX child_key_rid ON child_key(home, rid);

CREATE TABLE life(
  home int, rid bigint, seq bigint, was_live boolean NOT NULL, was_ts bigint, at bigint NOT NULL,
  PRIMARY KEY(home, rid, seq));

CREATE TABLE chunk(
  home int, rid bigint, fid int, n int, sum bytea NOT NULL, text text COLLATE "C" NOT NULL,
  PRIMARY KEY(home, rid, fid, n));

CREATE TABLE column_block(home int, sid int, fid int, b int, data bytea NOT NULL, PRIMARY KEY(home, sid, fid, b));
ALTER TABLE column_block ALTER data SET STORAGE EXTERNAL;

CREATE TABLE blob(
  home int, blob_id text COLLATE "C", mime_type text NOT NULL, size_bytes bigint NOT NULL, PRIMARY KEY(home, blob_id));
CREATE TABLE blob_part(
  home int, blob_id text COLLATE "C", n int, data bytea NOT NULL, PRIMARY KEY(home, blob_id, n));
ALTER TABLE blob_part ALTER data SET STORAGE EXTERNAL;
CREATE TABLE blob_use(
  home int, blob_id text COLLATE "C", rid bigint, fid int, mime_type text, PRIMARY KEY(home, blob_id, rid, fid));
CREATE INDEX blob_use_rid ON blob_use(home, rid);
CREATE TABLE blob_gone(home int, blob_id text COLLATE "C", PRIMARY KEY(home, blob_id));

CREATE TABLE idempotency(
  home int, key text COLLATE "C", digest bytea NOT NULL, report bytea NOT NULL, expires_at bigint NOT NULL,
  PRIMARY KEY(home, key));

CREATE TABLE change_day(home int, day bigint, seq bigint NOT NULL, PRIMARY KEY(home, day));

-- place: SHA-256 of the pointer, which may be long.
CREATE TABLE invalid(
  home int, rid bigint, place bytea, pointer text NOT NULL, fid int, message text NOT NULL,
  PRIMARY KEY(home, rid, place));

CREATE TABLE word_segment(
  home int, gid bigint, sid int NOT NULL, fid int NOT NULL, text_count bigint NOT NULL, occurrence_count bigint NOT NULL,
  languages bigint NOT NULL, dead bytea, filter bytea, firsts bytea NOT NULL, bounds bytea NOT NULL,
  numbers bytea NOT NULL, times bytea NOT NULL, lengths bytea NOT NULL, PRIMARY KEY(home, gid));
CREATE INDEX word_segment_field ON word_segment(home, sid, fid);
CREATE TABLE word_leaf(
  home int, lid bigint, words bytea NOT NULL, crc bigint NOT NULL, counts bytea NOT NULL, occurrences bytea NOT NULL,
  PRIMARY KEY(home, lid));
ALTER TABLE word_leaf ALTER words SET STORAGE EXTERNAL, ALTER counts SET STORAGE EXTERNAL,
  ALTER occurrences SET STORAGE EXTERNAL;

CREATE TABLE vector_block(
  home int, bid bigint, sid int NOT NULL, fid int NOT NULL, part bigint NOT NULL, crc bigint NOT NULL,
  numbers bytea NOT NULL, times bytea NOT NULL, starts bytea NOT NULL, ends bytea NOT NULL, vectors bytea NOT NULL,
  PRIMARY KEY(home, bid));
CREATE UNIQUE INDEX vector_block_part ON vector_block(home, sid, fid, part);
ALTER TABLE vector_block ALTER vectors SET STORAGE EXTERNAL;
CREATE TABLE vector_shelf(
  home int, sid int, model text NOT NULL, fids text NOT NULL, filled bigint NOT NULL, PRIMARY KEY(home, sid));
CREATE TABLE vector_stale(home int, rid bigint, fid int, PRIMARY KEY(home, rid, fid));

CREATE TABLE hiding_rule(
  home int, id text COLLATE "C", document bytea NOT NULL, created_at bigint NOT NULL, PRIMARY KEY(home, id));

-- Which process does work that one alone must do, and until when.
CREATE TABLE lease(home int, name text COLLATE "C", holder text NOT NULL, ends_at bigint NOT NULL, PRIMARY KEY(home, name));
