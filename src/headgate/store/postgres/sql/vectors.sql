-- name: visible_vector_shelves
-- The same of the shelves in a JSON list.
SELECT s.sid, s.next_n - 1, v.model, v.fids, v.filled, v.gaps FROM jsonb_array_elements_text(?::jsonb) j
JOIN shelf s ON s.home=:home AND s.sid = j.value::int LEFT JOIN vector_shelf v ON v.home = s.home AND v.sid = s.sid

-- name: mark_stale_text
-- Note that a text changed or left, if its vectors were made.
INSERT INTO vector_stale SELECT :home, new.rid, new.fid FROM unnest(?::bigint[], ?::int[]) AS new(rid, fid)
WHERE EXISTS (
  SELECT 1 FROM vector_shelf WHERE home=:home AND sid = (new.rid >> 40)::int AND filled >= new.rid & ((1::bigint << 40) - 1))
ON CONFLICT DO NOTHING

-- name: stale_texts
-- Some texts whose vectors are to be made anew, between two row numbers.
SELECT rid, fid FROM vector_stale WHERE home=:home AND rid > ? AND rid < ? ORDER BY rid, fid LIMIT nullif(?, -1)

-- name: insert_vector_block
-- Add a block.
WITH number AS (UPDATE meta SET v = v + 1 WHERE home=:home AND k='bid' RETURNING v)
INSERT INTO vector_block(home, bid, sid, fid, part, crc, numbers, times, starts, ends, vectors)
SELECT :home, v, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM number

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
