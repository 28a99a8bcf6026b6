-- name: find_record
-- One live record of a shelf, or of several, by its key.
SELECT {columns} FROM record r WHERE r.sid {shelves} AND r.record_id = ? AND r.deleted = 0{where}

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

-- name: row_in_list
-- The row is one of those in a JSON list of row numbers.
{rid} IN (SELECT value FROM json_each(?))

-- name: records_for_window
-- The live records of a key, with some pieces of a long text of each: a row for each piece, or one without a piece.
SELECT {columns}, c.sum, c.text FROM record r LEFT JOIN chunk c ON c.rid = r.rid AND c.fid = ? AND c.n BETWEEN ? AND ?
WHERE r.sid IN ({sids}) AND r.record_id = ? AND r.deleted = 0{where} ORDER BY r.sid, c.n

-- name: count_pending
-- How many visible records of a range of row numbers, or of a JSON list of them, have no vectors yet, up to a bound.
SELECT count(*) FROM (SELECT 1 FROM record r WHERE r.deleted=0 AND (r.rid > ? AND r.rid < ? OR
r.rid IN (SELECT value FROM json_each(?))){where} LIMIT {most})

-- name: delete_rows_of_record
-- Remove the rows of a table that belong to one record.
DELETE FROM {table} WHERE rid=?

-- name: put_typed_row
-- Store a record's typed values.
INSERT OR REPLACE INTO {table}(rid{names}) VALUES(?{marks})

-- name: stored_rows
-- Everything of records that a check compares, with their typed values.
SELECT {columns} FROM record r LEFT JOIN {table} t ON t.rid = r.rid

-- name: make_typed_table
-- Make the typed table of a stream.
CREATE TABLE {table}(rid INTEGER PRIMARY KEY) STRICT

-- name: add_typed_column
-- Add a column to the typed table of a stream.
ALTER TABLE {table} ADD COLUMN {column} {type}

-- name: index_typed_column
-- Let records be found by the value of a typed column.
CREATE INDEX IF NOT EXISTS {table}_{column} ON {table}({column})

-- name: records_of_typed
-- The records beside their typed values.
CROSS JOIN record AS r ON r.rid = t.rid

-- name: exact_sum
-- The sum of integers. As two numbers, a high part and a low one: the sum of all is longer than an integer may be.
sum({value} >> 32), sum({value} & 4294967295)

-- name: page_of_filtered
-- The visible rows that pass filters and have a place, in the stream's order: the typed values say which places the page ends
-- at, and only records up to there are read.
SELECT r.rid, r.sid, r.record_id, r.sort FROM (
  SELECT t.rid AS rid {rows}{from_place} AND {sort} {within} coalesce(
    (SELECT {last}(place) FROM (SELECT {sort} AS place {rows}{behind_place} ORDER BY 1 {direction} LIMIT ?) AS places),
    {no_place})) AS f
CROSS JOIN record AS r ON r.rid = f.rid WHERE 1{start}
ORDER BY r.sort {direction}, r.record_id {direction}, r.sid {direction} LIMIT ?
