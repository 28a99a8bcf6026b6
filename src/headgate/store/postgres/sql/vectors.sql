-- name: vector_shelf
-- By which model and of which fields the vectors of a shelf are made, and up to which record.
SELECT model, fids, filled FROM vector_shelf WHERE home=:home AND sid=?

-- name: vector_shelves
-- The same of every shelf, beside how many records it has had.
SELECT s.sid, s.next_n - 1, v.model, v.fids, v.filled FROM shelf s
LEFT JOIN vector_shelf v ON v.home = s.home AND v.sid = s.sid
WHERE s.home=:home ORDER BY s.sid

-- name: visible_vector_shelves
-- The same of the shelves in a JSON list.
SELECT s.sid, s.next_n - 1, v.model, v.fids, v.filled FROM jsonb_array_elements_text(?::jsonb) j
JOIN shelf s ON s.home=:home AND s.sid = j.value::int LEFT JOIN vector_shelf v ON v.home = s.home AND v.sid = s.sid

-- name: set_vector_shelf
-- Note up to which record the vectors of a shelf are made.
INSERT INTO vector_shelf VALUES(:home, ?1, ?2, ?3, ?4)
ON CONFLICT (home, sid) DO UPDATE SET model=excluded.model, fids=excluded.fids, filled=excluded.filled

-- name: delete_vector_shelf
-- Forget how far the vectors of a shelf are made.
DELETE FROM vector_shelf WHERE home=:home AND sid=?

-- name: delete_vector_blocks
-- Remove the vectors of a shelf.
DELETE FROM vector_block WHERE home=:home AND sid=?

-- name: mark_stale_text
-- Note that a text changed or left, if its vectors were made.
INSERT INTO vector_stale SELECT :home, new.rid, new.fid FROM unnest(?::bigint[], ?::int[]) AS new(rid, fid)
WHERE EXISTS (
  SELECT 1 FROM vector_shelf WHERE home=:home AND sid = (new.rid >> 40)::int AND filled >= new.rid & ((1::bigint << 40) - 1))
ON CONFLICT DO NOTHING

-- name: stale_texts
-- Some texts whose vectors are to be made anew, between two row numbers.
SELECT rid, fid FROM vector_stale WHERE home=:home AND rid > ? AND rid < ? ORDER BY rid, fid LIMIT nullif(?, -1)

-- name: delete_stale_text
-- Note that the vectors of a text are made anew.
DELETE FROM vector_stale WHERE home=:home AND rid=? AND fid=?

-- name: delete_stale_texts
-- Forget the stale texts between two row numbers.
DELETE FROM vector_stale WHERE home=:home AND rid > ? AND rid < ?

-- name: records_to_embed
-- The live records between two row numbers, both included: what their vectors are made of.
SELECT rid, seq, ts, long, body FROM record WHERE home=:home AND rid >= ? AND rid <= ? AND NOT deleted ORDER BY rid

-- name: change_number_of_record
-- The last change of a live record.
SELECT seq FROM record WHERE home=:home AND rid=? AND NOT deleted

-- name: vector_block
-- One block.
SELECT crc, numbers, times, starts, ends, vectors FROM vector_block WHERE home=:home AND bid=?

-- name: vector_block_of_part
-- The block of one part of the records of one field.
SELECT bid FROM vector_block WHERE home=:home AND sid=? AND fid=? AND part=?

-- name: vector_blocks_of_shelf
-- The blocks of a shelf, for a check.
SELECT bid, fid, part FROM vector_block WHERE home=:home AND sid=? ORDER BY bid

-- name: vector_fields_of_part
-- The fields of a shelf that have a block of one part.
SELECT fid FROM vector_block WHERE home=:home AND sid=? AND part=?

-- name: insert_vector_block
-- Add a block.
WITH number AS (UPDATE meta SET v = v + 1 WHERE home=:home AND k='bid' RETURNING v)
INSERT INTO vector_block(home, bid, sid, fid, part, crc, numbers, times, starts, ends, vectors)
SELECT :home, v, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM number

-- name: delete_vector_block
-- Remove a block.
DELETE FROM vector_block WHERE home=:home AND bid=?

-- name: visible_vector_blocks
-- The blocks of the fields in a JSON list of pairs of shelf and field.
SELECT b.bid, b.sid, b.fid FROM jsonb_array_elements(?::jsonb) j
CROSS JOIN LATERAL (SELECT bid, sid, fid, part FROM vector_block
  WHERE home=:home AND sid = (j.value ->> 0)::int AND fid = (j.value ->> 1)::int OFFSET 0) b
ORDER BY b.sid, b.fid, b.part

-- name: born_until
-- The records in a JSON list of row numbers that were there at a change number.
SELECT r.rid FROM record r
WHERE r.home=:home AND r.rid = ANY(ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(?::jsonb)))
  AND r.born_seq <= ?
