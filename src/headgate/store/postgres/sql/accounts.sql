-- name: connections
-- Every connection.
SELECT id, connector_key, display_name, created_at FROM connection WHERE home=:home

-- name: connection_exists
-- One row if there is a connection of that id.
SELECT 1 FROM connection WHERE home=:home AND id=?

-- name: insert_connection
-- Add a connection.
INSERT INTO connection(home, id, connector_key, display_name, created_at)
VALUES(:home, ?, ?, ?, ?)

-- name: rename_connection
-- Give a connection another name.
UPDATE connection SET display_name=? WHERE home=:home AND id=?

-- name: delete_connection
-- Remove a connection's own row.
DELETE FROM connection WHERE home=:home AND id=?

-- name: make_shelves
-- Add the shelves that a connector's connections lack; INSERT OR IGNORE would use up a number for each that exists.
WITH missing AS (
  SELECT c.id, s.stid, row_number() OVER (ORDER BY s.stid, c.created_at, c.id) AS place
  FROM connection c JOIN stream s ON s.home = c.home AND s.connector_key = c.connector_key
  LEFT JOIN shelf h ON h.home = c.home AND h.connection_id = c.id AND h.stid = s.stid AND h.hidden = 0
  WHERE c.home=:home AND c.connector_key=? AND h.sid IS NULL),
numbers AS (
  UPDATE meta SET v = v + (SELECT count(*) FROM missing) WHERE home=:home AND k='sid' RETURNING v)
INSERT INTO shelf(home, sid, connection_id, stid)
SELECT :home, numbers.v - (SELECT count(*) FROM missing) + place, id, stid FROM missing, numbers

-- name: make_hidden_shelf
-- Add the shelf for what rules hide of a stream of a connection.
WITH number AS (UPDATE meta SET v = v + 1 WHERE home=:home AND k='sid' RETURNING v)
INSERT INTO shelf(home, sid, connection_id, stid, hidden) SELECT :home, v, ?, ?, 1 FROM number

-- name: delete_shelf
-- Remove a shelf's own row.
DELETE FROM shelf WHERE home=:home AND sid=?

-- name: delete_shelf_times
-- Forget when the fields of a shelf changed.
DELETE FROM shelf_time WHERE home=:home AND sid=?

-- name: connection_state
-- The document that a collector last stored for itself.
SELECT state FROM connection WHERE home=:home AND id=?

-- name: set_connection_state
-- Store a collector's document.
UPDATE connection SET state=? WHERE home=:home AND id=?

-- name: insert_blob
-- Note a file whose parts are stored, and when it was last stored.
INSERT INTO blob VALUES(:home, ?, ?, ?, ?) ON CONFLICT(home, blob_id) DO UPDATE SET noted_at=excluded.noted_at

-- name: blob
-- The type and size of a file.
SELECT mime_type, size_bytes FROM blob WHERE home=:home AND blob_id=?

-- name: put_blob_part
-- Store a part of a file.
INSERT INTO blob_part VALUES(:home, ?, ?, ?) ON CONFLICT (home, blob_id, n) DO UPDATE SET data = excluded.data

-- name: blob_part
-- One part of a file.
SELECT data FROM blob_part WHERE home=:home AND blob_id=? AND n=?
