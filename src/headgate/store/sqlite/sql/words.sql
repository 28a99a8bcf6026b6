-- name: insert_word_segment
-- Add a segment.
INSERT INTO word_segment(
  sid, fid, text_count, occurrence_count, languages, filter, firsts, bounds, numbers, times, lengths)
VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING gid

-- name: insert_word_leaf
-- Add a leaf.
INSERT INTO word_leaf VALUES(?, ?, ?, ?, ?)

-- name: visible_segments
-- The segments of the fields in a JSON list of pairs of shelf and field, and how many of their texts have left.
SELECT gid, coalesce(length(dead) / 2, 0), sid, fid FROM json_each(?) j
JOIN word_segment s INDEXED BY word_segment_field ON s.sid = j.value ->> 0 AND s.fid = j.value ->> 1
ORDER BY gid

-- name: visible_gone_texts
-- The records whose texts left the fields in a JSON list of pairs of shelf and field, and up to which segment.
SELECT g.sid, g.fid, g.number, g.last_gid FROM json_each(?) j
JOIN word_gone g ON g.sid = j.value ->> 0 AND g.fid = j.value ->> 1 ORDER BY 1, 2, 3

-- name: leaf_words
-- The words of those of some leaves that hold a word; an empty word is in every leaf.
SELECT lid, words FROM json_each(?1) j JOIN word_leaf l ON l.lid = j.value WHERE instr(words, ?2)

-- name: leaf_occurrences
-- All of some leaves.
SELECT lid, words, crc, counts, occurrences FROM json_each(?) j JOIN word_leaf l ON l.lid = j.value

-- name: numbers_by_key
-- The row numbers of the records of a shelf that have one of the keys in a JSON list, and are not deleted.
SELECT rid FROM record WHERE sid=? AND deleted=0 AND record_id IN (SELECT value FROM json_each(?))

-- name: keys_by_number
-- The keys of the records in a JSON list of row numbers.
SELECT r.rid, r.record_id FROM json_each(?) j JOIN record r ON r.rid = j.value
