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
