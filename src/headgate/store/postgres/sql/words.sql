-- name: insert_word_segment
-- Add a segment.
WITH number AS (UPDATE meta SET v = v + 1 WHERE home=:home AND k='gid' RETURNING v)
INSERT INTO word_segment(
  home, gid, sid, fid, text_count, occurrence_count, languages, filter, firsts, bounds, numbers, times, lengths)
SELECT :home, v, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM number RETURNING gid

-- name: insert_word_leaf
-- Add a leaf.
INSERT INTO word_leaf SELECT :home, * FROM unnest(?::bigint[], ?::bytea[], ?::bigint[], ?::bytea[], ?::bytea[])

-- name: visible_segments
-- The segments of the fields in a JSON list of pairs of shelf and field, and how many of their texts have left.
SELECT s.gid, coalesce(length(s.dead) / 2, 0), s.sid, s.fid FROM jsonb_array_elements(?::jsonb) j
CROSS JOIN LATERAL (SELECT gid, dead, sid, fid FROM word_segment
  WHERE home=:home AND sid = (j.value ->> 0)::int AND fid = (j.value ->> 1)::int OFFSET 0) s
ORDER BY s.gid

-- name: visible_gone_texts
-- The records whose texts left the fields in a JSON list of pairs of shelf and field, and up to which segment.
SELECT g.sid, g.fid, g.number, g.last_gid FROM jsonb_array_elements(?::jsonb) j
JOIN word_gone g ON g.home=:home AND g.sid = (j.value ->> 0)::int AND g.fid = (j.value ->> 1)::int ORDER BY 1, 2, 3

-- name: leaf_words
-- The words of those of some leaves that hold a word; an empty word is in every leaf.
SELECT l.lid, l.words FROM word_leaf l
WHERE l.home=:home AND l.lid = ANY(ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(?1::jsonb)))
  AND position(?2::bytea IN l.words) > 0

-- name: leaf_occurrences
-- All of some leaves.
SELECT l.lid, l.words, l.crc, l.counts, l.occurrences FROM word_leaf l
WHERE l.home=:home AND l.lid = ANY(ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(?::jsonb)))

-- name: numbers_by_key
-- The row numbers of the records of a shelf that have one of the keys in a JSON list, and are not deleted.
SELECT rid FROM record WHERE home=:home AND sid=? AND NOT deleted AND key = ANY(ARRAY(
  SELECT sha256(convert_to(value, 'UTF8')) FROM jsonb_array_elements_text(?::jsonb)))

-- name: keys_by_number
-- The keys of the records in a JSON list of row numbers.
SELECT r.rid, r.record_id FROM record r
WHERE r.home=:home AND r.rid = ANY(ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(?::jsonb)))
