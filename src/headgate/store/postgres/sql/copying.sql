-- name: columns_of_table
-- The columns of a table; none if there is no such table.
SELECT attname::text, atttypid::regtype::text FROM pg_attribute
WHERE attrelid = to_regclass('{table}') AND attnum > 0 AND NOT attisdropped AND attname <> 'home' ORDER BY attnum

-- name: count_rows
-- How many rows a table has.
SELECT count(*) FROM {table} WHERE home=:home

-- name: rows_in_key_order
-- The rows of a table in the order of its key.
SELECT {names} FROM {table} WHERE home=:home ORDER BY {key}

-- name: rows_after_key
-- The rows after a key, in the order of the keys.
SELECT {names} FROM {table} WHERE home=:home AND ({key}) > ({marks}) ORDER BY {key}

-- name: last_key
-- The last key of a table.
SELECT {key} FROM {table} WHERE home=:home ORDER BY {last} LIMIT 1

-- name: insert_row
-- Add a row as it is elsewhere.
INSERT INTO {table}(home, {names}) VALUES(:home, {marks})

-- name: delete_all_rows
-- Remove every row of a table.
DELETE FROM {table} WHERE home=:home

-- name: typed_rows_between
-- The typed values of the records between two row numbers.
SELECT t.rid{select} FROM {table} t WHERE t.home=:home AND t.rid > ? AND t.rid < ? ORDER BY t.rid

-- name: last_typed_row
-- The last row number with typed values between two.
SELECT max(rid) FROM {table} WHERE home=:home AND rid > ? AND rid < ?

-- name: facts
-- Facts about the whole store, and the numbers that were given last.
SELECT k, v FROM meta WHERE home=:home

-- name: put_fact
-- Note a fact about the whole store.
INSERT INTO meta VALUES(:home, ?, ?) ON CONFLICT (home, k) DO UPDATE SET v = excluded.v

-- name: delete_fact
-- Forget a fact about the whole store.
DELETE FROM meta WHERE home=:home AND k=?

-- name: unfinished_copy
-- One row if the store is a copy that is not complete.
SELECT v FROM meta WHERE home=:home AND k='copying'

-- name: shelf_states
-- What every shelf was last changed by.
SELECT sid, next_n, live, seq FROM shelf WHERE home=:home ORDER BY sid
