-- name: columns_of_table
-- The columns of a table; none if there is no such table.
SELECT attname::text, atttypid::regtype::text FROM pg_attribute
WHERE attrelid = to_regclass('{table}') AND attnum > 0 AND NOT attisdropped AND attname <> 'home' ORDER BY attnum
