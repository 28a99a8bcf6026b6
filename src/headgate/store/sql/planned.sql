-- name: keys_between
-- The keys of live records between two texts.
SELECT r.record_id FROM record r
WHERE r.{home} r.sid IN ({sids}) AND r.{live} AND r.record_id BETWEEN ? AND ?{where}

-- name: rows_by_number
-- The records of some row numbers.
SELECT {columns} FROM record r WHERE r.{home} r.rid IN ({marks})

-- name: one_mark
-- The mark of one value in a list of them.
?

-- name: candidates_by_age
-- Some records up to a row number that changed after a change number.
SELECT {columns} FROM record r WHERE r.{home} r.rid > ? AND r.rid <= ? AND r.seq > ?{where} ORDER BY r.rid LIMIT ?

-- name: one_candidate
-- One record, as far as changes need it.
SELECT {columns} FROM record r WHERE r.{home} r.rid = ?

-- name: delete_rows_between
-- Remove the rows of a table between two row numbers.
DELETE FROM {table} WHERE {home} rid > ? AND rid < ?

-- name: blob_users
-- The live records that refer to a file.
SELECT u.fid, u.mime_type, r.sid, r.record_id FROM blob_use u JOIN record r ON r.{home} r.rid = u.rid
WHERE u.{home} u.blob_id = ? AND r.sid IN ({sids}) AND r.{live}{where} ORDER BY r.rid, u.fid

-- name: live_of_shelves
-- How many live records some shelves hold together.
SELECT CAST(coalesce(sum(live), 0) AS bigint) FROM shelf WHERE {home} sid IN ({sids})

-- name: shelf_totals
-- How many live records each shelf holds, when it last changed, and the number of that change.
SELECT sid, live, updated_at, seq FROM shelf WHERE {home} true

-- name: rows_in_index
-- How many rows an index has for a shelf.
SELECT count(*) FROM record {index {index}} WHERE {home} sid=?{condition}

-- name: is_live
-- The record is not deleted.
r.{live}

-- name: rows_of_range
-- The rows from one row number to another.
WHERE r.{home} r.rid >= ? AND r.rid < ? ORDER BY r.rid

-- name: row_of_number
-- One row.
WHERE r.{home} r.rid = ?

-- name: is_in_order
-- The record is in the index of its stream's order.
{live}

-- name: typed_of_shelves
-- The typed values of shelves, each by its first row number and with the records beside them if they are needed.
FROM (VALUES {starts}) AS s CROSS JOIN {table} AS t{records}
WHERE t.{home} t.rid > s.column1 AND t.rid < s.column1 + {size}{where}

-- name: records_of_shelves
-- The records of shelves that pass a scope, with their typed values beside them if they are needed.
FROM record AS r{join} WHERE r.{home} r.sid IN ({sids}) AND r.{live}{where}

-- name: aggregate
-- Numbers over visible rows, or over each group of them.
SELECT {select} {rows}{groups}

-- name: is_unreadable
-- The row has a value of a field that cannot be read as its type.
{value} IS NULL AND EXISTS (SELECT 1 FROM invalid AS i WHERE i.{home} i.rid = t.rid AND i.fid = {fid})

-- name: exact_value
-- The exact value of a number in a scale, if it has one.
CASE WHEN abs({number}) < {below} THEN
CASE WHEN round({number} * {power}) / {power} = {number} THEN CAST(round({number} * {power}) AS bigint) END END

-- name: fill_exact_values
-- Compute the exact values of a column between two row numbers.
UPDATE {table} AS t SET {target} = {value} WHERE t.{home} t.rid > ? AND t.rid < ?

-- name: inexact_row
-- A row between two row numbers whose number has an exact value only in a finer scale.
SELECT 1 FROM {table} AS t WHERE t.{home} t.rid > ? AND t.rid < ? AND {value} IS NULL AND {finest} IS NOT NULL LIMIT 1

-- name: wrong_exact_rows
-- The rows between two row numbers that hold another exact value than that of their number.
SELECT t.rid FROM {table} AS t WHERE t.{home} t.rid > ? AND t.rid < ? AND {held} IS DISTINCT FROM {value}
