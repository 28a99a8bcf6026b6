-- name: connections
-- Every connection.
SELECT id, connector_key, display_name, created_at FROM connection WHERE {home} true

-- name: connection_exists
-- One row if there is a connection of that id.
SELECT 1 FROM connection WHERE {home} id=?

-- name: insert_connection
-- Add a connection.
INSERT INTO connection({home_column}id, connector_key, display_name, created_at)
VALUES({home_value}?, ?, ?, ?)

-- name: rename_connection
-- Give a connection another name.
UPDATE connection SET display_name=? WHERE {home} id=?

-- name: delete_connection
-- Remove a connection's own row.
DELETE FROM connection WHERE {home} id=?

-- name: note_connection_gone
-- Note the digest of an id that must not be used again.
INSERT INTO connection_gone VALUES({home_value}?) ON CONFLICT DO NOTHING

-- name: connection_gone
-- One row if a connection with an id of that digest was removed.
SELECT 1 FROM connection_gone WHERE {home} digest=?

-- name: delete_shelf
-- Remove a shelf's own row.
DELETE FROM shelf WHERE {home} sid=?

-- name: delete_shelf_times
-- Forget when the fields of a shelf changed.
DELETE FROM shelf_time WHERE {home} sid=?

-- name: connection_state
-- The document that a collector last stored for itself.
SELECT state FROM connection WHERE {home} id=?

-- name: set_connection_state
-- Store a collector's document.
UPDATE connection SET state=? WHERE {home} id=?

-- name: insert_blob
-- Note a file that lies in the blob directory, and when it was last stored.
INSERT INTO blob VALUES({home_value}?, ?, ?, ?) ON CONFLICT({home_column}blob_id) DO UPDATE SET noted_at=excluded.noted_at

-- name: blob
-- The type and size of a file.
SELECT mime_type, size_bytes FROM blob WHERE {home} blob_id=?
