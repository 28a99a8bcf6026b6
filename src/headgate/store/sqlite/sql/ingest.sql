-- name: change_number
-- The number of the last change.
SELECT v FROM meta WHERE k='seq'

-- name: set_change_number
-- Note the number of the last change.
UPDATE meta SET v=? WHERE k='seq'

-- name: change_numbers
-- The number of the last change, and the last one that is forgotten.
SELECT k, v FROM meta WHERE k IN ('seq', 'pruned_seq')

-- name: delete_expired_keys
-- Forget idempotency keys that are too old.
DELETE FROM idempotency WHERE expires_at <= ?

-- name: idempotent_report
-- The report of a batch that was stored under this key.
SELECT digest, report FROM idempotency WHERE key=?

-- name: insert_idempotent_report
-- Remember a batch's report under its key.
INSERT INTO idempotency VALUES(?, ?, ?, ?)

-- name: shelf_to_fill
-- The number of a shelf and of its next record.
SELECT sid, next_n FROM shelf WHERE connection_id=? AND stid=? AND hidden=?

-- name: update_shelf
-- Note what a batch did to its shelf.
UPDATE shelf SET next_n=?, live=live+?, seq=?, updated_at=? WHERE sid=?

-- name: date_shelf
-- Note when a field of a shelf last changed.
INSERT OR REPLACE INTO shelf_time VALUES(?, ?, ?)

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

-- name: has_older_rules
-- Whether there are rules, and records were last compared with them by another version.
SELECT 1 FROM hiding_rule WHERE coalesce((SELECT v FROM meta WHERE k='rules'), 0) <> ? LIMIT 1

-- name: set_rules_version
-- Note by which version all records were compared with the rules.
INSERT INTO meta VALUES('rules', ?) ON CONFLICT(k) DO UPDATE SET v=excluded.v

-- name: records_to_move
-- The live ones of the records with the row numbers in a JSON list.
SELECT r.rid, r.record_id, r.emitted_at, r.long, r.body FROM json_each(?) j JOIN record r ON r.rid = j.value
WHERE r.deleted=0 ORDER BY r.rid

-- name: marks_to_move
-- Where a record breaks its schema, and which field cannot be read.
SELECT pointer, message, fid FROM invalid WHERE rid=?
