-- name: visible_vector_shelves
-- The same of the shelves in a JSON list.
SELECT s.sid, s.next_n - 1, v.model, v.fids, v.filled, v.gaps FROM json_each(?) j
JOIN shelf s ON s.sid = j.value LEFT JOIN vector_shelf v ON v.sid = s.sid

-- name: mark_stale_text
-- Note that a text changed or left, if its vectors were made.
INSERT OR IGNORE INTO vector_stale SELECT ?1, ?2
WHERE EXISTS(SELECT 1 FROM vector_shelf WHERE sid = ?1 >> 40 AND filled >= ?1 & ((1 << 40) - 1))

-- name: stale_texts
-- Some texts whose vectors are to be made anew, between two row numbers.
SELECT rid, fid FROM vector_stale WHERE rid > ? AND rid < ? ORDER BY rid, fid LIMIT ?

-- name: insert_vector_block
-- Add a block.
INSERT INTO vector_block(sid, fid, part, crc, numbers, times, starts, ends, vectors) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: visible_vector_blocks
-- The blocks of the fields in a JSON list of pairs of shelf and field.
SELECT bid, b.sid, fid FROM json_each(?) j
JOIN vector_block b INDEXED BY vector_block_part ON b.sid = j.value ->> 0 AND b.fid = j.value ->> 1
ORDER BY b.sid, fid, part

-- name: born_until
-- The records in a JSON list of row numbers that were there at a change number.
SELECT r.rid FROM json_each(?) j JOIN record r ON r.rid = j.value WHERE r.born_seq <= ?
