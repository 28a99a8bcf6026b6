-- name: columns_of_table
-- The columns of a table; none if there is no such table.
SELECT name, lower(type) FROM pragma_table_info('{table}')

-- name: count_rows
-- How many rows a table has.
SELECT count(*) FROM {table}

-- name: rows_in_key_order
-- The rows of a table in the order of its key.
SELECT {names} FROM {table} ORDER BY {key}

-- name: rows_after_key
-- The rows after a key, in the order of the keys.
SELECT {names} FROM {table} WHERE ({key}) > ({marks}) ORDER BY {key}

-- name: last_key
-- The last key of a table.
SELECT {key} FROM {table} ORDER BY {last} LIMIT 1

-- name: insert_row
-- Add a row as it is elsewhere.
INSERT INTO {table}({names}) VALUES({marks})

-- name: delete_all_rows
-- Remove every row of a table.
DELETE FROM {table}

-- name: typed_rows_between
-- The typed values of the records between two row numbers.
SELECT t.rid{select} FROM {table} t WHERE t.rid > ? AND t.rid < ? ORDER BY t.rid

-- name: last_typed_row
-- The last row number with typed values between two.
SELECT max(rid) FROM {table} WHERE rid > ? AND rid < ?

-- name: facts
-- Facts about the whole store.
SELECT k, v FROM meta

-- name: put_fact
-- Note a fact about the whole store.
INSERT INTO meta VALUES(?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v

-- name: delete_fact
-- Forget a fact about the whole store.
DELETE FROM meta WHERE k=?

-- name: unfinished_copy
-- One row if the store is a copy that is not complete.
SELECT v FROM meta WHERE k='copying'

-- name: given_numbers
-- The numbers that were given last, to tables that never give one again.
SELECT name, seq FROM sqlite_sequence

-- name: last_stream
-- The number that was given to a stream last.
SELECT coalesce(max(stid), 0) FROM stream

-- name: forget_given_number
-- Forget the number that a table gave last.
DELETE FROM sqlite_sequence WHERE name=?

-- name: put_given_number
-- Note the number that a table gave last.
INSERT INTO sqlite_sequence(name, seq) VALUES(?, ?)

-- name: shelf_states
-- What every shelf was last changed by.
SELECT sid, next_n, live, seq FROM shelf ORDER BY sid
