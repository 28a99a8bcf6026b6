-- name: change_number
-- The number of the last change.
SELECT v FROM meta WHERE home=:home AND k='seq'

-- name: set_change_number
-- Note the number of the last change.
UPDATE meta SET v=? WHERE home=:home AND k='seq'

-- name: change_numbers
-- The number of the last change, and the last one that is forgotten.
SELECT k, v FROM meta WHERE home=:home AND k IN ('seq', 'pruned_seq')

-- name: delete_expired_keys
-- Forget idempotency keys that are too old.
DELETE FROM idempotency WHERE home=:home AND expires_at <= ?

-- name: idempotent_report
-- The report of a batch that was stored under this key.
SELECT digest, report FROM idempotency WHERE home=:home AND key=?

-- name: insert_idempotent_report
-- Remember a batch's report under its key.
INSERT INTO idempotency VALUES(:home, ?, ?, ?, ?)

-- name: shelf_to_fill
-- The number of a shelf and of its next record.
SELECT sid, next_n FROM shelf WHERE home=:home AND connection_id=? AND stid=? AND hidden=?

-- name: update_shelf
-- Note what a batch did to its shelf.
UPDATE shelf SET next_n=?, live=live+?, seq=?, updated_at=? WHERE home=:home AND sid=?

-- name: date_shelf
-- Note when a field of a shelf last changed.
INSERT INTO shelf_time VALUES(:home, ?, ?, ?) ON CONFLICT (home, sid, fid) DO UPDATE SET at = excluded.at

-- name: stored_records
-- The records of a shelf that have one of the keys in a JSON list.
SELECT record_id, rid, born_seq, ts, emitted_at, deleted, changed, long, digest, body FROM record
WHERE home=:home AND sid=? AND key = ANY(ARRAY(
  SELECT sha256(convert_to(value, 'UTF8')) FROM jsonb_array_elements_text(?::jsonb)))

-- name: insert_record
-- Add a record.
INSERT INTO record(home, rid, sid, key, record_id, seq, born_seq, sort, ts, emitted_at, long, digest, body)
SELECT :home, rid, sid, sha256(convert_to(record_id, 'UTF8')), record_id, seq, born_seq, sort, ts, emitted_at,
  long, digest, body
FROM unnest(?::bigint[], ?::int[], ?::text[], ?::bigint[], ?::bigint[], ?::bytea[], ?::bigint[], ?::bigint[],
  ?::bytea[], ?::bytea[], ?::bytea[])
  AS new(rid, sid, record_id, seq, born_seq, sort, ts, emitted_at, long, digest, body)

-- name: update_record
-- Change a record, or make a tombstone of it.
UPDATE record r SET seq=new.seq, sort=new.sort, ts=new.ts, emitted_at=new.emitted_at, deleted=new.deleted,
  changed=new.changed, long=new.long, digest=new.digest, body=new.body
FROM unnest(?::bigint[], ?::bigint[], ?::bytea[], ?::bigint[], ?::bigint[], ?::boolean[], ?::bytea[], ?::bytea[],
  ?::bytea[], ?::bytea[])
  AS new(rid, seq, sort, ts, emitted_at, deleted, changed, long, digest, body)
WHERE r.home=:home AND r.rid = new.rid

-- name: insert_life
-- Note what a record was before it came into or left some scope.
INSERT INTO life SELECT :home, * FROM unnest(?::bigint[], ?::bigint[], ?::boolean[], ?::bigint[], ?::bigint[])

-- name: delete_chunks
-- Remove a record's long texts.
DELETE FROM chunk WHERE home=:home AND rid = ANY(?::bigint[])

-- name: insert_chunk
-- Store a piece of a long text.
INSERT INTO chunk SELECT :home, * FROM unnest(?::bigint[], ?::int[], ?::int[], ?::bytea[], ?::text[])

-- name: delete_blob_uses
-- Forget the files that a record referred to.
DELETE FROM blob_use WHERE home=:home AND rid = ANY(?::bigint[])

-- name: insert_blob_use
-- Note that a field of a record refers to a file.
INSERT INTO blob_use SELECT :home, * FROM unnest(?::text[], ?::bigint[], ?::int[], ?::text[]) ON CONFLICT DO NOTHING

-- name: unmark_record
-- Forget where a record broke its schema.
DELETE FROM invalid WHERE home=:home AND rid = ANY(?::bigint[])

-- name: mark_record
-- Note where a record breaks its schema.
INSERT INTO invalid(home, rid, place, pointer, fid, message)
VALUES(:home, ?1, sha256(convert_to(?2, 'UTF8')), ?2, ?3, ?4)
ON CONFLICT (home, rid, place) DO UPDATE SET fid = excluded.fid, message = excluded.message

-- name: has_older_rules
-- Whether there are rules, and records were last compared with them by another version.
SELECT 1 FROM hiding_rule
WHERE home=:home AND coalesce((SELECT v FROM meta WHERE home=:home AND k='rules'), 0) <> ? LIMIT 1

-- name: set_rules_version
-- Note by which version all records were compared with the rules.
INSERT INTO meta VALUES(:home, 'rules', ?) ON CONFLICT(home, k) DO UPDATE SET v=excluded.v

-- name: records_to_move
-- The live ones of the records with the row numbers in a JSON list.
SELECT r.rid, r.record_id, r.emitted_at, r.long, r.body FROM record r
WHERE r.home=:home AND r.rid = ANY(ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(?::jsonb)))
  AND NOT r.deleted ORDER BY r.rid

-- name: marks_to_move
-- Where a record breaks its schema, and which field cannot be read.
SELECT pointer, message, fid FROM invalid WHERE home=:home AND rid=?
