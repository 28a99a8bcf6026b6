-- name: catalog_number
-- The number that every change of the catalog raises.
SELECT v FROM meta WHERE k='catalog'

-- name: raise_catalog_number
-- End every cache of the catalog, in every process.
UPDATE meta SET v = v + 1 WHERE k='catalog'

-- name: connector_keys
-- Every connector that was ever declared.
SELECT DISTINCT connector_key FROM declaration

-- name: declaration_documents
-- Every declared version of a connector, the newest last.
SELECT document FROM declaration WHERE connector_key=? ORDER BY position

-- name: declared_document
-- One declared version of a connector.
SELECT document FROM declaration WHERE connector_key=? AND version=?

-- name: insert_declaration
-- Add a declared version as the newest.
INSERT INTO declaration SELECT ?, ?, coalesce(max(position), 0) + 1, ? FROM declaration

-- name: streams
-- Every stream that was ever declared.
SELECT stid, connector_key, name FROM stream

-- name: insert_stream
-- Number a new stream; the number also names its typed table.
INSERT INTO stream(connector_key, name) VALUES(?, ?) RETURNING stid

-- name: fields
-- Every field of every stream with its column, and whether it is in the word index.
SELECT stid, name, fid, col, kind, slot FROM field

-- name: fields_of_stream
-- Every field of one stream with its column, and whether it is in the word index.
SELECT name, fid, col, kind, slot FROM field WHERE stid=?

-- name: typed_fields_of_stream
-- The fields of a stream that have a column in its typed table.
SELECT name, col, kind FROM field WHERE stid=? AND col IS NOT NULL

-- name: next_fid
-- The next free field number of a stream.
SELECT coalesce(max(fid), 0) + 1 FROM field WHERE stid=?

-- name: next_column
-- The next free column number of a stream's typed table.
SELECT coalesce(max(col), 0) + 1 FROM field WHERE stid=?

-- name: insert_field
-- Number a new field.
INSERT INTO field(stid, name, fid) VALUES(?, ?, ?)

-- name: set_field_column
-- Note a field's column in the typed table.
UPDATE field SET col=?, kind=? WHERE stid=? AND name=?

-- name: shelves
-- Every shelf, in the order of their numbers.
SELECT sid, connection_id, stid, hidden FROM shelf ORDER BY sid

-- name: hiding_rules
-- The owner's rules, the oldest first.
SELECT document FROM hiding_rule ORDER BY created_at, id

-- name: insert_hiding_rule
-- Add a rule.
INSERT INTO hiding_rule VALUES(?, ?, ?)

-- name: delete_hiding_rule
-- Remove a rule; one row if there was one.
DELETE FROM hiding_rule WHERE id=? RETURNING 1

-- name: shelves_of_stream
-- The shelves of one stream, in any connection.
SELECT sid FROM shelf WHERE stid=?

-- name: live_counts
-- How many live records each shelf holds.
SELECT sid, live FROM shelf

-- name: column_scales
-- The scale of each column of a stream that has exact values.
SELECT col, scale FROM field WHERE stid=? AND scale IS NOT NULL

-- name: set_column_scale
-- Note the scale of a column's exact values.
UPDATE field SET scale=? WHERE stid=? AND col=?

-- name: columns_without_scale
-- The columns of numbers that have no exact values yet.
SELECT stid, col FROM field WHERE kind='number' AND scale IS NULL ORDER BY stid, col
