-- name: connections
-- Every connection.
SELECT id, connector_key, display_name, created_at FROM connection

-- name: connection_exists
-- One row if there is a connection of that id.
SELECT 1 FROM connection WHERE id=?

-- name: insert_connection
-- Add a connection.
INSERT INTO connection(id, connector_key, display_name, created_at) VALUES(?, ?, ?, ?)

-- name: rename_connection
-- Give a connection another name.
UPDATE connection SET display_name=? WHERE id=?

-- name: delete_connection
-- Remove a connection's own row.
DELETE FROM connection WHERE id=?

-- name: make_shelves
-- Add the shelves that a connector's connections lack; INSERT OR IGNORE would use up a number for each that exists.
INSERT INTO shelf(connection_id, stid)
SELECT c.id, s.stid FROM connection c
JOIN stream s USING(connector_key)
LEFT JOIN shelf h ON h.connection_id = c.id AND h.stid = s.stid AND h.hidden = 0
WHERE c.connector_key=? AND h.sid IS NULL
ORDER BY s.stid, c.created_at, c.id

-- name: make_hidden_shelf
-- Add the shelf for what rules hide of a stream of a connection.
INSERT INTO shelf(connection_id, stid, hidden) VALUES(?, ?, 1)

-- name: delete_shelf
-- Remove a shelf's own row.
DELETE FROM shelf WHERE sid=?

-- name: delete_shelf_times
-- Forget when the fields of a shelf changed.
DELETE FROM shelf_time WHERE sid=?

-- name: connection_state
-- The document that a collector last stored for itself.
SELECT state FROM connection WHERE id=?

-- name: set_connection_state
-- Store a collector's document.
UPDATE connection SET state=? WHERE id=?

-- name: insert_blob
-- Note a file that lies in the blob directory, and when it was last stored.
INSERT INTO blob VALUES(?, ?, ?, ?) ON CONFLICT(blob_id) DO UPDATE SET noted_at=excluded.noted_at

-- name: blob
-- The type and size of a file.
SELECT mime_type, size_bytes FROM blob WHERE blob_id=?
