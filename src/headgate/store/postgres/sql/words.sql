-- name: words_version
-- By which version of the rules the word index was made; 0 while it is being made.
SELECT v FROM meta WHERE home=:home AND k='words'

-- name: set_words_version
-- Note by which version of the rules the word index was made.
UPDATE meta SET v=? WHERE home=:home AND k='words'

-- name: words_filled
-- Up to which record a new word index is filled.
SELECT v FROM meta WHERE home=:home AND k='words_filled'

-- name: set_words_filled
-- Note up to which record a new word index is filled.
UPDATE meta SET v=? WHERE home=:home AND k='words_filled'

-- name: mark_searched_field
-- Note that a field's texts are in the word index; it has no column in the older one.
UPDATE field SET slot=-1 WHERE home=:home AND stid=? AND name=? AND slot IS NULL

-- name: insert_word_segment
-- Add a segment.
WITH number AS (UPDATE meta SET v = v + 1 WHERE home=:home AND k='gid' RETURNING v)
INSERT INTO word_segment(
  home, gid, sid, fid, text_count, occurrence_count, languages, filter, firsts, bounds, numbers, times, lengths)
SELECT :home, v, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM number RETURNING gid

-- name: insert_word_leaf
-- Add a leaf.
INSERT INTO word_leaf SELECT :home, * FROM unnest(?::bigint[], ?::bytea[], ?::bigint[], ?::bytea[], ?::bytea[])

-- name: word_segments_of_field
-- The segments of one field of one shelf: their size, and how many of their texts have left.
SELECT gid, text_count, occurrence_count, coalesce(length(dead) / 2, 0)
FROM word_segment WHERE home=:home AND sid=? AND fid=?

-- name: word_segment_sizes
-- The size of every segment, and how many of its texts have left.
SELECT sid, fid, gid, text_count, occurrence_count, coalesce(length(dead) / 2, 0) FROM word_segment WHERE home=:home

-- name: word_segment_texts
-- The texts of a segment, and which of them have left.
SELECT numbers, times, lengths, dead FROM word_segment WHERE home=:home AND gid=?

-- name: word_segment_head
-- What a search has to know of a segment before it reads any leaf.
SELECT languages, dead, filter, firsts, bounds, numbers, times, lengths FROM word_segment WHERE home=:home AND gid=?

-- name: segments_to_check
-- The segments of a shelf, for a check.
SELECT gid, fid, text_count, occurrence_count, filter, firsts, bounds, numbers, times, dead FROM word_segment WHERE home=:home AND sid=?

-- name: numbers_of_field
-- Which records have a text in each segment of one field of one shelf, and which texts have left.
SELECT gid, numbers, dead FROM word_segment WHERE home=:home AND sid=? AND fid=?

-- name: numbers_of_shelf
-- Which records have a text in each segment of a shelf.
SELECT gid, fid, numbers FROM word_segment WHERE home=:home AND sid=?

-- name: set_dead_texts
-- Note which texts of a segment have left.
UPDATE word_segment SET dead=? WHERE home=:home AND gid=?

-- name: word_leaves
-- The leaves of a segment, in order.
SELECT words, crc, counts, occurrences FROM word_leaf WHERE home=:home AND lid >= ? AND lid < ? ORDER BY lid

-- name: delete_word_leaves
-- Remove the leaves of a segment.
DELETE FROM word_leaf WHERE home=:home AND lid >= ? AND lid < ?

-- name: delete_word_segment
-- Remove a segment's own row.
DELETE FROM word_segment WHERE home=:home AND gid=?

-- name: live_records_after
-- Some live records of the whole store after a row number, in order.
SELECT rid, ts, long, body FROM record WHERE home=:home AND rid > ? AND NOT deleted ORDER BY rid LIMIT ?

-- name: visible_segments
-- The segments of the fields in a JSON list of pairs of shelf and field, and how many of their texts have left.
SELECT s.gid, coalesce(length(s.dead) / 2, 0), s.sid, s.fid FROM jsonb_array_elements(?::jsonb) j
CROSS JOIN LATERAL (SELECT gid, dead, sid, fid FROM word_segment
  WHERE home=:home AND sid = (j.value ->> 0)::int AND fid = (j.value ->> 1)::int OFFSET 0) s
ORDER BY s.gid

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
