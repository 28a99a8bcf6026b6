-- name: find_record
-- One live record of a shelf, or of several, by its key.
SELECT {columns} FROM record r WHERE r.sid {shelves} AND r.record_id = ? AND r.deleted = 0{where}

-- name: keys_between
-- The keys of live records between two texts.
SELECT r.record_id FROM record r
WHERE r.sid IN ({sids}) AND r.record_id BETWEEN ? AND ? AND r.deleted = 0{where}

-- name: page_by_key
-- Live records in the order of their keys, merged over shelves.
SELECT r.rid, r.sid, r.record_id, r.sort FROM record r{join} WHERE r.sid IN ({sids}) AND r.deleted = 0{start}{where}
ORDER BY r.record_id {direction}, r.sid {direction} LIMIT ?

-- name: page_by_sort
-- Those that have a place in the stream's order, in that order, merged over shelves.
SELECT r.rid, r.sid, r.record_id, r.sort FROM record r{join}
WHERE r.sid IN ({sids}) AND r.deleted = 0 AND r.sort IS NOT NULL{start}{where}
ORDER BY r.sort {direction}, r.record_id {direction}, r.sid {direction} LIMIT ?

-- name: page_by_text_sort
-- The same where that order is one of texts.
SELECT r.rid, r.sid, r.record_id, r.sort FROM record r{join}
WHERE r.sid IN ({sids}) AND r.deleted = 0 AND r.sort IS NOT NULL{start}{where}
ORDER BY r.sort {direction}, r.record_id {direction}, r.sid {direction} LIMIT ?

-- name: page_without_sort
-- Those that have none, in the order of their keys.
SELECT r.rid, r.sid, r.record_id, r.sort FROM record r{join}
WHERE r.sid IN ({sids}) AND r.deleted = 0 AND r.sort IS NULL{start}{where}
ORDER BY r.record_id {direction}, r.sid {direction} LIMIT ?

-- name: start_by_key
-- The place after which a page by key starts. The leading column alone lets the index start there; the rest settles ties.
AND r.record_id {beyond}= ? AND (r.record_id, r.sid) {beyond} (?, ?)

-- name: start_by_sort
-- The same for a page in the stream's order.
AND r.sort {beyond}= ? AND (r.sort, r.record_id, r.sid) {beyond} (?, ?, ?)

-- name: children
-- Live records whose field holds a key of their parent.
SELECT {columns} FROM {table} t JOIN record r ON r.rid = t.rid
WHERE {condition} AND r.sid IN ({sids}) AND r.deleted = 0{where} ORDER BY {order} LIMIT ?

-- name: typed_join
-- The typed table beside the records.
JOIN {table} t ON t.rid = r.rid

-- name: key_in_list
-- The record has one of the keys in a JSON list.
r.record_id IN (SELECT value FROM json_each(?))

-- name: by_key
-- How records of some keys are found: not by walking the order of the stream.
INDEXED BY record_key

-- name: text_of_field
-- A text field of the record holds a text; typed columns of such fields hold a checksum alone.
field_text(r.body, ?) = ?

-- name: passing_rows
-- Those of the records in a JSON list of row numbers that pass a scope.
SELECT r.rid FROM json_each(?) j JOIN record r ON r.rid = j.value{join} WHERE r.deleted = 0{where}

-- name: rows_by_number
-- The records of some row numbers.
SELECT {columns} FROM record r WHERE r.rid IN ({marks})

-- name: one_mark
-- The mark of one value in a list of them.
?

-- name: records_for_window
-- The live records of a key, with some pieces of a long text of each: a row for each piece, or one without a piece.
SELECT {columns}, c.sum, c.text FROM record r LEFT JOIN chunk c ON c.rid = r.rid AND c.fid = ? AND c.n BETWEEN ? AND ?
WHERE r.sid IN ({sids}) AND r.record_id = ? AND r.deleted = 0{where} ORDER BY r.sid, c.n

-- name: candidates_by_age
-- Some records up to a row number that changed after a change number.
SELECT {columns} FROM record r WHERE r.rid > ? AND r.rid <= ? AND r.seq > ?{where} ORDER BY r.rid LIMIT ?

-- name: one_candidate
-- One record, as far as changes need it.
SELECT {columns} FROM record r WHERE r.rid = ?

-- name: count_pending
-- How many visible records of a range of row numbers, or of a JSON list of them, have no vectors yet, up to a bound.
SELECT count(*) FROM (SELECT 1 FROM record r WHERE r.deleted=0 AND (r.rid > ? AND r.rid < ? OR
r.rid IN (SELECT value FROM json_each(?))){where} LIMIT {most})

-- name: delete_rows_between
-- Remove the rows of a table between two row numbers.
DELETE FROM {table} WHERE rid > ? AND rid < ?

-- name: delete_rows_of_record
-- Remove the rows of a table that belong to one record.
DELETE FROM {table} WHERE rid=?

-- name: put_typed_row
-- Store a record's typed values.
INSERT OR REPLACE INTO {table}(rid{names}) VALUES(?{marks})

-- name: blob_users
-- The live records that refer to a file.
SELECT u.fid, u.mime_type, r.sid, r.record_id FROM blob_use u JOIN record r ON r.rid = u.rid
WHERE u.blob_id = ? AND r.sid IN ({sids}) AND r.deleted = 0{where} ORDER BY r.rid, u.fid

-- name: live_of_shelves
-- How many live records some shelves hold together.
SELECT coalesce(sum(live), 0) FROM shelf WHERE sid IN ({sids})

-- name: shelf_totals
-- How many live records each shelf holds, when it last changed, and the number of that change.
SELECT sid, live, updated_at, seq FROM shelf

-- name: stored_rows
-- Everything of records that a check compares, with their typed values.
SELECT {columns} FROM record r LEFT JOIN {table} t ON t.rid = r.rid

-- name: rows_in_index
-- How many rows an index has for a shelf.
SELECT count(*) FROM record INDEXED BY {index} WHERE sid=?{condition}

-- name: make_typed_table
-- Make the typed table of a stream.
CREATE TABLE {table}(rid INTEGER PRIMARY KEY) STRICT

-- name: add_typed_column
-- Add a column to the typed table of a stream.
ALTER TABLE {table} ADD COLUMN {column} {type}

-- name: index_typed_column
-- Let records be found by the value of a typed column.
CREATE INDEX IF NOT EXISTS {table}_{column} ON {table}({column})

-- name: is_live
-- The record is not deleted.
r.deleted = 0

-- name: rows_of_range
-- The rows from one row number to another.
WHERE r.rid >= ? AND r.rid < ? ORDER BY r.rid

-- name: row_of_number
-- One row.
WHERE r.rid = ?

-- name: is_in_order
-- The record is in the index of its stream's order.
deleted = 0

-- name: typed_of_shelves
-- The typed values of shelves, each by its first row number and with the records beside them if they are needed.
FROM (VALUES {starts}) AS s CROSS JOIN {table} AS t{records}
WHERE t.rid > s.column1 AND t.rid < s.column1 + {size}{where}

-- name: records_of_typed
-- The records beside their typed values.
CROSS JOIN record AS r ON r.rid = t.rid

-- name: records_of_shelves
-- The records of shelves that pass a scope, with their typed values beside them if they are needed.
FROM record AS r{join} WHERE r.sid IN ({sids}) AND r.deleted = 0{where}

-- name: aggregate
-- Numbers over visible rows, or over each group of them.
SELECT {select} {rows}{groups}

-- name: exact_sum
-- The sum of integers. As two numbers, a high part and a low one: the sum of all is longer than an integer may be.
sum({value} >> 32), sum({value} & 4294967295)

-- name: is_unreadable
-- The row has a value of a field that cannot be read as its type.
{value} IS NULL AND EXISTS (SELECT 1 FROM invalid AS i WHERE i.rid = t.rid AND i.fid = {fid})

-- name: page_of_filtered
-- The visible rows that pass filters and have a place, in the stream's order: the typed values say which places the page ends
-- at, and only records up to there are read.
SELECT r.rid, r.sid, r.record_id, r.sort FROM (
  SELECT t.rid AS rid {rows}{from_place} AND {sort} {within} coalesce(
    (SELECT {last}(place) FROM (SELECT {sort} AS place {rows}{behind_place} ORDER BY 1 {direction} LIMIT ?) AS places),
    {no_place})) AS f
CROSS JOIN record AS r ON r.rid = f.rid WHERE 1{start}
ORDER BY r.sort {direction}, r.record_id {direction}, r.sid {direction} LIMIT ?

-- name: exact_value
-- The exact value of a number in a scale, if it has one.
CASE WHEN abs({number}) < {below} THEN
CASE WHEN round({number} * {power}) / {power} = {number} THEN CAST(round({number} * {power}) AS bigint) END END

-- name: fill_exact_values
-- Compute the exact values of a column between two row numbers.
UPDATE {table} AS t SET {target} = {value} WHERE t.rid > ? AND t.rid < ?

-- name: inexact_row
-- A row between two row numbers whose number has an exact value only in a finer scale.
SELECT 1 FROM {table} AS t WHERE t.rid > ? AND t.rid < ? AND {value} IS NULL AND {finest} IS NOT NULL LIMIT 1

-- name: wrong_exact_rows
-- The rows between two row numbers that hold another exact value than that of their number.
SELECT t.rid FROM {table} AS t WHERE t.rid > ? AND t.rid < ? AND {held} IS DISTINCT FROM {value}
