-- name: shelf_dated
-- When one of some fields of a shelf last changed.
SELECT max(at) FROM shelf_time WHERE sid=? AND fid IN (SELECT value FROM json_each(?))

-- name: changed_rids_by_key
-- Those of them that have one of the keys in a JSON list.
SELECT rid FROM record INDEXED BY record_key
WHERE sid=? AND seq > ? AND rid > ? AND record_id IN (SELECT value FROM json_each(?)) ORDER BY rid

-- name: live_record
-- One row if a shelf has a live record of that key.
SELECT rid FROM record WHERE sid=? AND record_id=? AND deleted=0
