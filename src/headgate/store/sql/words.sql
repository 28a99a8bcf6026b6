-- name: words_version
-- By which version of the rules the word index was made; 0 while it is being made.
SELECT v FROM meta WHERE {home} k='words'

-- name: set_words_version
-- Note by which version of the rules the word index was made.
UPDATE meta SET v=? WHERE {home} k='words'

-- name: words_filled
-- Up to which record a new word index is filled.
SELECT v FROM meta WHERE {home} k='words_filled'

-- name: set_words_filled
-- Note up to which record a new word index is filled.
UPDATE meta SET v=? WHERE {home} k='words_filled'

-- name: mark_searched_field
-- Note that a field's texts are in the word index; it has no column in the older one.
UPDATE field SET slot=-1 WHERE {home} stid=? AND name=? AND slot IS NULL

-- name: word_segments_of_field
-- The segments of one field of one shelf: their size, and how many of their texts have left.
SELECT gid, text_count, occurrence_count, coalesce(length(dead) / 2, 0)
FROM word_segment {index word_segment_field} WHERE {home} sid=? AND fid=?

-- name: word_segment_sizes
-- The size of every segment, and how many of its texts have left.
SELECT sid, fid, gid, text_count, occurrence_count, coalesce(length(dead) / 2, 0) FROM word_segment WHERE {home} true

-- name: word_segment_texts
-- The texts of a segment, and which of them have left.
SELECT numbers, times, lengths, dead FROM word_segment WHERE {home} gid=?

-- name: word_segment_head
-- What a search has to know of a segment before it reads any leaf.
SELECT languages, dead, filter, firsts, bounds, numbers, times, lengths FROM word_segment WHERE {home} gid=?

-- name: segments_to_check
-- The segments of a shelf, for a check.
SELECT gid, fid, text_count, occurrence_count, filter, firsts, bounds, numbers, times, dead FROM word_segment
{index word_segment_field} WHERE {home} sid=?

-- name: numbers_of_field
-- Which records have a text in each segment of one field of one shelf, and which texts have left.
SELECT gid, numbers, dead FROM word_segment {index word_segment_field} WHERE {home} sid=? AND fid=?

-- name: numbers_of_shelf
-- Which records have a text in each segment of a shelf.
SELECT gid, fid, numbers FROM word_segment {index word_segment_field} WHERE {home} sid=?

-- name: last_segment
-- The newest segment of one field of one shelf.
SELECT max(gid) FROM word_segment {index word_segment_field} WHERE {home} sid=? AND fid=?

-- name: gone_texts
-- The records whose texts left one field of one shelf, and up to which segment.
SELECT number, last_gid FROM word_gone WHERE {home} sid=? AND fid=? ORDER BY number

-- name: fields_with_gone_texts
-- The fields that texts left without being noted in their segments.
SELECT DISTINCT sid, fid FROM word_gone WHERE {home} true

-- name: put_gone_text
-- Note that the texts of a record left the segments of a field.
INSERT INTO word_gone VALUES({home_value}?1, ?2, ?3, ?4)
ON CONFLICT ({home_column}sid, fid, number) DO UPDATE SET last_gid=excluded.last_gid

-- name: delete_gone_texts
-- Forget which texts left a field: its segments say so.
DELETE FROM word_gone WHERE {home} sid=? AND fid=?

-- name: delete_gone_of_shelf
-- The same of a whole shelf.
DELETE FROM word_gone WHERE {home} sid=?

-- name: set_dead_texts
-- Note which texts of a segment have left.
UPDATE word_segment SET dead=? WHERE {home} gid=?

-- name: word_leaves
-- The leaves of a segment, in order.
SELECT words, crc, counts, occurrences FROM word_leaf WHERE {home} lid >= ? AND lid < ? ORDER BY lid

-- name: delete_word_leaves
-- Remove the leaves of a segment.
DELETE FROM word_leaf WHERE {home} lid >= ? AND lid < ?

-- name: delete_word_segment
-- Remove a segment's own row.
DELETE FROM word_segment WHERE {home} gid=?

-- name: live_records_after
-- Some live records of the whole store after a row number, in order.
SELECT rid, ts, long, body FROM record WHERE {home} rid > ? AND {live} ORDER BY rid LIMIT ?
