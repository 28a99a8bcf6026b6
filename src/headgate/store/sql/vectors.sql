-- name: vector_shelf
-- By which model and of which fields the vectors of a shelf are made, up to which record, and which are left below it.
SELECT model, fids, filled, gaps FROM vector_shelf WHERE {home} sid=?

-- name: vector_shelves
-- The same of every shelf, beside how many records it has had.
SELECT s.sid, s.next_n - 1, v.model, v.fids, v.filled, v.gaps FROM shelf s
LEFT JOIN vector_shelf v ON v.{home} v.sid = s.sid
WHERE s.{home} true ORDER BY s.sid

-- name: set_vector_shelf
-- Note which vectors of a shelf are made.
INSERT INTO vector_shelf VALUES({home_value}?1, ?2, ?3, ?4, ?5)
ON CONFLICT ({home_column}sid)
DO UPDATE SET model=excluded.model, fids=excluded.fids, filled=excluded.filled, gaps=excluded.gaps

-- name: delete_vector_shelf
-- Forget how far the vectors of a shelf are made.
DELETE FROM vector_shelf WHERE {home} sid=?

-- name: delete_vector_blocks
-- Remove the vectors of a shelf.
DELETE FROM vector_block WHERE {home} sid=?

-- name: delete_stale_text
-- Note that the vectors of a text are made anew.
DELETE FROM vector_stale WHERE {home} rid=? AND fid=?

-- name: delete_stale_texts
-- Forget the stale texts between two row numbers.
DELETE FROM vector_stale WHERE {home} rid > ? AND rid < ?

-- name: records_to_embed
-- The live records between two row numbers, both included, the newest first: what their vectors are made of.
SELECT rid, seq, ts, long, body FROM record WHERE {home} rid >= ? AND rid <= ? AND {live} ORDER BY rid DESC

-- name: change_number_of_record
-- The last change of a live record.
SELECT seq FROM record WHERE {home} rid=? AND {live}

-- name: vector_block
-- One block.
SELECT crc, numbers, times, starts, ends, vectors FROM vector_block WHERE {home} bid=?

-- name: vector_block_of_part
-- The block of one part of the records of one field.
SELECT bid FROM vector_block WHERE {home} sid=? AND fid=? AND part=?

-- name: vector_blocks_of_shelf
-- The blocks of a shelf, for a check.
SELECT bid, fid, part FROM vector_block WHERE {home} sid=? ORDER BY bid

-- name: vector_fields_of_part
-- The fields of a shelf that have a block of one part.
SELECT fid FROM vector_block WHERE {home} sid=? AND part=?

-- name: delete_vector_block
-- Remove a block.
DELETE FROM vector_block WHERE {home} bid=?
