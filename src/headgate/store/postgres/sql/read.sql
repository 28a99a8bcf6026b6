-- name: shelf_dated
-- When one of some fields of a shelf last changed.
SELECT max(at) FROM shelf_time WHERE home=:home AND sid=? AND fid IN (
  SELECT value::int FROM jsonb_array_elements_text(?::jsonb))

-- name: changed_rids_by_key
-- Those of them that have one of the keys in a JSON list.
SELECT rid FROM record WHERE home=:home AND sid=? AND seq > ? AND rid > ? AND key = ANY(ARRAY(
  SELECT sha256(convert_to(value, 'UTF8')) FROM jsonb_array_elements_text(?::jsonb))) ORDER BY rid

-- name: live_record
-- One row if a shelf has a live record of that key.
SELECT rid FROM record WHERE home=:home AND sid=? AND key=sha256(convert_to(?, 'UTF8')) AND NOT deleted
