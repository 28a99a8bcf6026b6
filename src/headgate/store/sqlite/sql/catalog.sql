-- name: insert_stream
-- Number a new stream; the number also names its typed table.
INSERT INTO stream(connector_key, name) VALUES(?, ?) RETURNING stid
