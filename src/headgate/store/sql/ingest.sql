-- name: change_number
-- The number of the last change.
SELECT v FROM meta WHERE {home} k='seq'

-- name: set_change_number
-- Note the number of the last change.
UPDATE meta SET v=? WHERE {home} k='seq'

-- name: change_numbers
-- The number of the last change, and the last one that is forgotten.
SELECT k, v FROM meta WHERE {home} k IN ('seq', 'pruned_seq')

-- name: delete_expired_keys
-- Forget idempotency keys that are too old.
DELETE FROM idempotency WHERE {home} expires_at <= ?

-- name: idempotent_report
-- The report of a batch that was stored under this key.
SELECT digest, report FROM idempotency WHERE {home} key=?

-- name: insert_idempotent_report
-- Remember a batch's report under its key.
INSERT INTO idempotency VALUES({home_value}?, ?, ?, ?)

-- name: shelf_to_fill
-- The number of a shelf and of its next record.
SELECT sid, next_n FROM shelf WHERE {home} connection_id=? AND stid=? AND hidden=?

-- name: update_shelf
-- Note what a batch did to its shelf.
UPDATE shelf SET next_n=?, live=live+?, seq=?, updated_at=? WHERE {home} sid=?

-- name: date_shelf
-- Note when a field of a shelf last changed.
INSERT INTO shelf_time VALUES({home_value}?, ?, ?) ON CONFLICT ({home_column}sid, fid) DO UPDATE SET at = excluded.at

-- name: has_older_rules
-- Whether there are rules, and records were last compared with them by another version.
SELECT 1 FROM hiding_rule
WHERE {home} coalesce((SELECT v FROM meta WHERE {home} k='rules'), 0) <> ? LIMIT 1

-- name: set_rules_version
-- Note by which version all records were compared with the rules.
INSERT INTO meta VALUES({home_value}'rules', ?) ON CONFLICT({home_column}k) DO UPDATE SET v=excluded.v

-- name: marks_to_move
-- Where a record breaks its schema, and which field cannot be read.
SELECT pointer, message, fid FROM invalid WHERE {home} rid=?
