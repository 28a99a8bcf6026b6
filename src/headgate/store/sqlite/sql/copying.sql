-- name: columns_of_table
-- The columns of a table; none if there is no such table.
SELECT name, lower(type) FROM pragma_table_info('{table}')

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
