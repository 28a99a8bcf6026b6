-- name: live_records
-- Some live records of a range of row numbers, in order.
SELECT rid, ts, long, body FROM record WHERE {home} rid > ? AND rid < ? AND {live} ORDER BY rid LIMIT ?

-- name: record_key
-- The key of a record.
SELECT record_id FROM record WHERE {home} rid=?

-- name: long_text
-- All pieces of a long text.
SELECT text FROM chunk WHERE {home} rid=? AND fid=? ORDER BY n

-- name: long_text_part
-- Some pieces of a long text, with their checksums.
SELECT sum, text FROM chunk WHERE {home} rid=? AND fid=? AND n BETWEEN ? AND ? ORDER BY n

-- name: count_changes
-- How many records of a shelf changed since a number; counts no further than the limit.
SELECT count(*) FROM (
  SELECT 1 FROM record {index record_seq} WHERE {home} sid=? AND seq > ? AND rid > ? LIMIT ?) AS counted

-- name: lost_record
-- Key and place of a live record, out of the index of its stream's order alone.
SELECT record_id, sort FROM record {index record_sort} WHERE {home} sid=? AND {live} AND rid=?

-- name: changed_rids
-- Which records of a shelf changed since a number, in the order in which they first came in.
SELECT rid FROM record {index record_seq} WHERE {home} sid=? AND seq > ? AND rid > ? ORDER BY rid

-- name: last_number
-- The last row number between two; 0 if there is none.
SELECT coalesce(max(rid), 0) FROM record WHERE {home} rid > ? AND rid < ?

-- name: marked_records
-- Some records of a range of row numbers that break their schema.
SELECT i.rid, r.record_id FROM invalid i JOIN record r ON r.{home} r.rid = i.rid
WHERE i.{home} i.rid > ? AND i.rid < ? GROUP BY i.rid, r.record_id ORDER BY i.rid LIMIT ?

-- name: marks
-- Where a record breaks its schema.
SELECT pointer, message FROM invalid WHERE {home} rid=? ORDER BY pointer

-- name: lives
-- What a record was before each change that moved it into or out of some scope.
SELECT seq, was_live, was_ts, at FROM life WHERE {home} rid=? ORDER BY seq
