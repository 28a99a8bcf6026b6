-- name: stored_records
-- The records of a shelf that have one of the keys in a JSON list.
SELECT record_id, rid, born_seq, ts, emitted_at, deleted, changed, long, digest, body FROM record
WHERE sid=? AND record_id IN (SELECT value FROM json_each(?))

-- name: insert_record
-- Add a record.
INSERT INTO record(rid, sid, record_id, seq, born_seq, sort, ts, emitted_at, long, digest, body)
VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: update_record
-- Change a record, or make a tombstone of it.
UPDATE record SET seq=?2, sort=?3, ts=?4, emitted_at=?5, deleted=?6, changed=?7, long=?8, digest=?9, body=?10
WHERE rid=?1

-- name: insert_life
-- Note what a record was before it came into or left some scope.
INSERT INTO life VALUES(?, ?, ?, ?, ?)

-- name: delete_chunks
-- Remove a record's long texts.
DELETE FROM chunk WHERE rid=?

-- name: insert_chunk
-- Store a piece of a long text.
INSERT INTO chunk VALUES(?, ?, ?, ?, ?)

-- name: delete_blob_uses
-- Forget the files that a record referred to.
DELETE FROM blob_use WHERE rid=?

-- name: insert_blob_use
-- Note that a field of a record refers to a file.
INSERT OR IGNORE INTO blob_use VALUES(?, ?, ?, ?)

-- name: unmark_record
-- Forget where a record broke its schema.
DELETE FROM invalid WHERE rid=?

-- name: mark_record
-- Note where a record breaks its schema.
INSERT OR REPLACE INTO invalid VALUES(?, ?, ?, ?)

-- name: records_to_move
-- The live ones of the records with the row numbers in a JSON list.
SELECT r.rid, r.record_id, r.emitted_at, r.long, r.body FROM json_each(?) j JOIN record r ON r.rid = j.value
WHERE r.deleted=0 ORDER BY r.rid
