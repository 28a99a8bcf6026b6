-- name: live_records
-- Some live records of a range of row numbers, in order.
SELECT rid, ts, long, body FROM record WHERE rid > ? AND rid < ? AND deleted=0 ORDER BY rid LIMIT ?

-- name: record_key
-- The key of a record.
SELECT record_id FROM record WHERE rid=?

-- name: long_text
-- All pieces of a long text.
SELECT text FROM chunk WHERE rid=? AND fid=? ORDER BY n

-- name: long_text_part
-- Some pieces of a long text, with their checksums.
SELECT sum, text FROM chunk WHERE rid=? AND fid=? AND n BETWEEN ? AND ? ORDER BY n

-- name: count_changes
-- How many records of a shelf changed since a number; counts no further than the limit.
SELECT count(*) FROM (
  SELECT 1 FROM record INDEXED BY record_seq WHERE sid=? AND seq > ? AND rid > ? LIMIT ?)

-- name: changed_rids
-- Which records of a shelf changed since a number, in the order in which they first came in.
SELECT rid FROM record INDEXED BY record_seq WHERE sid=? AND seq > ? AND rid > ? ORDER BY rid

-- name: lives
-- What a record was before each change that moved it into or out of some scope.
SELECT seq, was_live, was_ts, at FROM life WHERE rid=? ORDER BY seq
