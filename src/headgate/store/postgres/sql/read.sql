-- name: live_records
-- Some live records of a range of row numbers, in order.
SELECT rid, ts, long, body FROM record WHERE home=:home AND rid > ? AND rid < ? AND NOT deleted ORDER BY rid LIMIT ?

-- name: record_key
-- The key of a record.
SELECT record_id FROM record WHERE home=:home AND rid=?

-- name: long_text
-- All pieces of a long text.
SELECT text FROM chunk WHERE home=:home AND rid=? AND fid=? ORDER BY n

-- name: long_text_part
-- Some pieces of a long text, with their checksums.
SELECT sum, text FROM chunk WHERE home=:home AND rid=? AND fid=? AND n BETWEEN ? AND ? ORDER BY n

-- name: count_changes
-- How many records of a shelf changed since a number; counts no further than the limit.
SELECT count(*) FROM (
  SELECT 1 FROM record WHERE home=:home AND sid=? AND seq > ? AND rid > ? LIMIT ?) AS counted

-- name: shelf_dated
-- When one of some fields of a shelf last changed.
SELECT max(at) FROM shelf_time WHERE home=:home AND sid=? AND fid IN (
  SELECT value::int FROM jsonb_array_elements_text(?::jsonb))

-- name: lost_record
-- Key and place of a live record, out of the index of its stream's order alone.
SELECT record_id, sort FROM record WHERE home=:home AND sid=? AND NOT deleted AND rid=?

-- name: changed_rids
-- Which records of a shelf changed since a number, in the order in which they first came in.
SELECT rid FROM record WHERE home=:home AND sid=? AND seq > ? AND rid > ? ORDER BY rid

-- name: changed_rids_by_key
-- Those of them that have one of the keys in a JSON list.
SELECT rid FROM record WHERE home=:home AND sid=? AND seq > ? AND rid > ? AND key = ANY(ARRAY(
  SELECT sha256(convert_to(value, 'UTF8')) FROM jsonb_array_elements_text(?::jsonb))) ORDER BY rid

-- name: last_number
-- The last row number between two; 0 if there is none.
SELECT coalesce(max(rid), 0) FROM record WHERE home=:home AND rid > ? AND rid < ?

-- name: marked_records
-- Some records of a range of row numbers that break their schema.
SELECT i.rid, r.record_id FROM invalid i JOIN record r ON r.home = i.home AND r.rid = i.rid
WHERE i.home=:home AND i.rid > ? AND i.rid < ? GROUP BY i.rid, r.record_id ORDER BY i.rid LIMIT ?

-- name: marks
-- Where a record breaks its schema.
SELECT pointer, message FROM invalid WHERE home=:home AND rid=? ORDER BY pointer

-- name: live_record
-- One row if a shelf has a live record of that key.
SELECT rid FROM record WHERE home=:home AND sid=? AND key=sha256(convert_to(?, 'UTF8')) AND NOT deleted

-- name: lives
-- What a record was before each change that moved it into or out of some scope.
SELECT seq, was_live, was_ts, at FROM life WHERE home=:home AND rid=? ORDER BY seq
