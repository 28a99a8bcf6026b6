-- name: count_rows
-- How many rows a table has.
SELECT count(*) FROM {table} WHERE {home} true

-- name: rows_in_key_order
-- The rows of a table in the order of its key.
SELECT {names} FROM {table} WHERE {home} true ORDER BY {key}

-- name: rows_after_key
-- The rows after a key, in the order of the keys.
SELECT {names} FROM {table} WHERE {home} ({key}) > ({marks}) ORDER BY {key}

-- name: last_key
-- The last key of a table.
SELECT {key} FROM {table} WHERE {home} true ORDER BY {last} LIMIT 1

-- name: insert_row
-- Add a row as it is elsewhere.
INSERT INTO {table}({home_column}{names}) VALUES({home_value}{marks})

-- name: delete_all_rows
-- Remove every row of a table.
DELETE FROM {table} WHERE {home} true

-- name: typed_rows_between
-- The typed values of the records between two row numbers.
SELECT t.rid{select} FROM {table} t WHERE t.{home} t.rid > ? AND t.rid < ? ORDER BY t.rid

-- name: last_typed_row
-- The last row number with typed values between two.
SELECT max(rid) FROM {table} WHERE {home} rid > ? AND rid < ?

-- name: facts
-- Facts about the whole store.
SELECT k, v FROM meta WHERE {home} true

-- name: put_fact
-- Note a fact about the whole store.
INSERT INTO meta VALUES({home_value}?, ?) ON CONFLICT ({home_column}k) DO UPDATE SET v = excluded.v

-- name: delete_fact
-- Forget a fact about the whole store.
DELETE FROM meta WHERE {home} k=?

-- name: unfinished_copy
-- One row if the store is a copy that is not complete.
SELECT v FROM meta WHERE {home} k='copying'

-- name: shelf_states
-- What every shelf was last changed by.
SELECT sid, next_n, live, seq FROM shelf WHERE {home} true ORDER BY sid
