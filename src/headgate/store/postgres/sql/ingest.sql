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

-- name: records_to_move
-- The live ones of the records with the row numbers in a JSON list.
SELECT r.rid, r.record_id, r.emitted_at, r.long, r.body FROM record r
WHERE r.home=:home AND r.rid = ANY(ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(?::jsonb)))
  AND NOT r.deleted ORDER BY r.rid
