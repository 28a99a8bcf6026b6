-- name: catalog_number
-- The number that every change of the catalog raises.
SELECT v FROM meta WHERE home=:home AND k='catalog'

-- name: raise_catalog_number
-- End every cache of the catalog, in every process.
UPDATE meta SET v = v + 1 WHERE home=:home AND k='catalog'

-- name: connector_keys
-- Every connector that was ever declared.
SELECT DISTINCT connector_key FROM declaration WHERE home=:home

-- name: declaration_documents
-- Every declared version of a connector, the newest last.
SELECT document FROM declaration WHERE home=:home AND connector_key=? ORDER BY position

-- name: declared_document
-- One declared version of a connector.
SELECT document FROM declaration WHERE home=:home AND connector_key=? AND version=?

-- name: insert_declaration
-- Add a declared version as the newest.
INSERT INTO declaration(home, connector_key, version, position, document)
SELECT :home, ?, ?, coalesce(max(position), 0) + 1, ? FROM declaration WHERE home=:home

-- name: streams
-- Every stream that was ever declared.
SELECT stid, connector_key, name FROM stream WHERE home=:home

-- name: insert_stream
-- Number a new stream; the number also names its typed table.
WITH number AS (UPDATE meta SET v = v + 1 WHERE home=:home AND k='stid' RETURNING v)
INSERT INTO stream(home, stid, connector_key, name) SELECT :home, v, ?, ? FROM number RETURNING stid

-- name: fields
-- Every field of every stream with its column, and whether it is in the word index.
SELECT stid, name, fid, col, kind, slot FROM field WHERE home=:home

-- name: fields_of_stream
-- Every field of one stream with its column, and whether it is in the word index.
SELECT name, fid, col, kind, slot FROM field WHERE home=:home AND stid=?

-- name: typed_fields_of_stream
-- The fields of a stream that have a column in its typed table.
SELECT name, col, kind FROM field WHERE home=:home AND stid=? AND col IS NOT NULL

-- name: next_fid
-- The next free field number of a stream.
SELECT coalesce(max(fid), 0) + 1 FROM field WHERE home=:home AND stid=?

-- name: next_column
-- The next free column number of a stream's typed table.
SELECT coalesce(max(col), 0) + 1 FROM field WHERE home=:home AND stid=?

-- name: insert_field
-- Number a new field.
INSERT INTO field(home, stid, name, fid)
VALUES(:home, ?, ?, ?)

-- name: set_field_column
-- Note a field's column in the typed table.
UPDATE field SET col=?, kind=? WHERE home=:home AND stid=? AND name=?

-- name: shelves
-- Every shelf, in the order of their numbers.
SELECT sid, connection_id, stid, hidden FROM shelf WHERE home=:home ORDER BY sid

-- name: hiding_rules
-- The owner's rules, the oldest first.
SELECT document FROM hiding_rule WHERE home=:home ORDER BY created_at, id

-- name: insert_hiding_rule
-- Add a rule.
INSERT INTO hiding_rule VALUES(:home, ?, ?, ?)

-- name: delete_hiding_rule
-- Remove a rule; one row if there was one.
DELETE FROM hiding_rule WHERE home=:home AND id=? RETURNING 1

-- name: shelves_of_stream
-- The shelves of one stream, in any connection.
SELECT sid FROM shelf WHERE home=:home AND stid=?

-- name: live_counts
-- How many live records each shelf holds.
SELECT sid, live FROM shelf WHERE home=:home

-- name: state_numbers
-- The numbers that caches are compared with.
SELECT k, v FROM meta WHERE home=:home AND k IN ('catalog', 'version')

-- name: raise_version
-- Begin to write: no other transaction of the home writes until this one ends.
UPDATE meta SET v = v + 1 WHERE home=:home AND k='version' RETURNING v

-- name: replica_state
-- The version of the records, and the latest time that a machine has seen, as far as this server has them.
SELECT coalesce(max(v) FILTER (WHERE k='version'), 0), coalesce(max(v) FILTER (WHERE k='latest_time'), 0)
FROM meta WHERE home=:home AND k IN ('version', 'latest_time')

-- name: column_scales
-- The scale of each column of a stream that has exact values.
SELECT col, scale FROM field WHERE home=:home AND stid=? AND scale IS NOT NULL

-- name: set_column_scale
-- Note the scale of a column's exact values.
UPDATE field SET scale=? WHERE home=:home AND stid=? AND col=?

-- name: columns_without_scale
-- The columns of numbers that have no exact values yet.
SELECT stid, col FROM field WHERE home=:home AND kind='number' AND scale IS NULL ORDER BY stid, col
