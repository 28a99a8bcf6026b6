-- name: insert_stream
-- Number a new stream; the number also names its typed table.
WITH number AS (UPDATE meta SET v = v + 1 WHERE home=:home AND k='stid' RETURNING v)
INSERT INTO stream(home, stid, connector_key, name) SELECT :home, v, ?, ? FROM number RETURNING stid

-- name: state_numbers
-- The numbers that caches are compared with.
SELECT k, v FROM meta WHERE home=:home AND k IN ('catalog', 'version')

-- name: raise_version
-- Begin to write: no other transaction of the home writes until this one ends.
UPDATE meta SET v = v + 1 WHERE home=:home AND k='version' RETURNING v
