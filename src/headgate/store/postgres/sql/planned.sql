-- name: find_record
-- One live record of a shelf, or of several, by its key.
SELECT {columns} FROM record r
WHERE r.home=:home AND r.sid {shelves} AND r.key = sha256(convert_to(?, 'UTF8')) AND NOT r.deleted{where}

-- name: keys_between
-- The keys of live records between two texts.
SELECT r.record_id FROM record r
WHERE r.home=:home AND r.sid IN ({sids}) AND NOT r.deleted AND r.record_id BETWEEN ? AND ?{where}

-- name: page_by_key
-- Live records in the order of their keys, merged over shelves. What the index holds decides which of a shelf's are read, with
-- all that are alike in it; their whole order is that of the outer sort. The columns are those of keys, or of whole rows.
SELECT {columns} FROM unnest(ARRAY[{sids}]::int[]) s(sid) CROSS JOIN LATERAL (
  SELECT {columns} FROM record r{join}
  WHERE r.home=:home AND r.sid = s.sid AND NOT r.deleted{start}{where}
  ORDER BY left(r.record_id, 256) {direction} FETCH FIRST (?~) ROWS WITH TIES) r
ORDER BY left(r.record_id, 256) {direction}, r.record_id {direction}, r.sid {direction} LIMIT ?

-- name: page_by_sort
-- Those that have a place in the stream's order, in that order, merged over shelves.
SELECT {columns} FROM unnest(ARRAY[{sids}]::int[]) s(sid) CROSS JOIN LATERAL (
  SELECT {columns} FROM record r{join}
  WHERE r.home=:home AND r.sid = s.sid AND NOT r.deleted AND r.sort IS NOT NULL{start}{where}
  ORDER BY substr(r.sort, 1, 512) {direction}, left(r.record_id, 256) {direction} FETCH FIRST (?~) ROWS WITH TIES) r
ORDER BY substr(r.sort, 1, 512) {direction}, left(r.record_id, 256) {direction}, r.record_id {direction}, r.sid {direction} LIMIT ?

-- name: page_by_text_sort
-- The same where that order is one of texts, of which an index holds only the beginning.
SELECT {columns} FROM unnest(ARRAY[{sids}]::int[]) s(sid) CROSS JOIN LATERAL (
  SELECT {columns} FROM record r{join}
  WHERE r.home=:home AND r.sid = s.sid AND NOT r.deleted AND r.sort IS NOT NULL{start}{where}
  ORDER BY substr(r.sort, 1, 512) {direction} FETCH FIRST (?~) ROWS WITH TIES) r
ORDER BY substr(r.sort, 1, 512) {direction}, r.sort {direction}, r.record_id {direction}, r.sid {direction} LIMIT ?

-- name: page_without_sort
-- Those that have none, in the order of their keys.
SELECT {columns} FROM unnest(ARRAY[{sids}]::int[]) s(sid) CROSS JOIN LATERAL (
  SELECT {columns} FROM record r{join}
  WHERE r.home=:home AND r.sid = s.sid AND NOT r.deleted AND r.sort IS NULL{start}{where}
  ORDER BY left(r.record_id, 256) {direction} FETCH FIRST (?~) ROWS WITH TIES) r
ORDER BY left(r.record_id, 256) {direction}, r.record_id {direction}, r.sid {direction} LIMIT ?

-- name: page_with_rows
-- The records of a page's keys, each after its place in the stream's order, in the order of the keys.
SELECT {columns} FROM unnest(ARRAY(SELECT k.rid FROM ({keys}) AS k)) WITH ORDINALITY AS k(rid, at)
JOIN record r ON r.home=:home AND r.rid = k.rid ORDER BY k.at

-- name: start_by_key
-- The place after which a page by key starts. The leading column alone lets the index start there; the rest settles ties.
AND left(r.record_id, 256) {beyond}= left(?, 256) AND (r.record_id, r.sid) {beyond} (?, ?)

-- name: start_by_sort
-- The same for a page in the stream's order.
AND substr(r.sort, 1, 512) {beyond}= substr(?, 1, 512) AND (r.sort, r.record_id, r.sid) {beyond} (?, ?, ?)

-- name: children
-- Live records whose field holds a key of their parent.
SELECT {columns} FROM child_key t JOIN record r ON r.home = t.home AND r.rid = t.rid
WHERE t.home=:home AND {condition} AND r.sid IN ({sids}) AND NOT r.deleted{where} ORDER BY {order} LIMIT ?

-- name: typed_join
-- The typed table beside the records. OFFSET keeps it from being read whole where most homes are small.
JOIN LATERAL (SELECT * FROM typed WHERE home = r.home AND rid = r.rid OFFSET 0) t ON true

-- name: key_in_list
-- The record has one of the keys in a JSON list.
r.key = ANY(ARRAY(SELECT sha256(convert_to(value, 'UTF8')) FROM jsonb_array_elements_text(?::jsonb)))

-- name: by_key
-- How records of some keys are found: not by walking the order of the stream.
/* by the index of keys */

-- name: text_of_field
-- A text field of the record holds a text; typed columns of such fields hold a checksum alone.
(convert_from(r.body, 'UTF8')::json ->> ?) = ?

-- name: passing_rows
-- Those of the records in a JSON list of row numbers that pass a scope.
SELECT r.rid FROM record r{join}
WHERE r.home=:home AND r.rid = ANY(ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(?::jsonb)))
  AND NOT r.deleted{where}

-- name: rows_by_number
-- The records of some row numbers.
SELECT {columns} FROM record r WHERE r.home=:home AND r.rid IN ({marks})

-- name: one_mark
-- The mark of one value in a list of them.
?

-- name: records_for_window
-- The live records of a key, with some pieces of a long text of each: a row for each piece, or one without a piece.
SELECT {columns}, c.sum, c.text FROM record r
LEFT JOIN chunk c ON c.home = r.home AND c.rid = r.rid AND c.fid = ? AND c.n BETWEEN ? AND ?
WHERE r.home=:home AND r.sid IN ({sids}) AND r.key = sha256(convert_to(?, 'UTF8')) AND NOT r.deleted{where} ORDER BY r.sid, c.n

-- name: candidates_by_age
-- Some records up to a row number that changed after a change number.
SELECT {columns} FROM record r WHERE r.home=:home AND r.rid > ? AND r.rid <= ? AND r.seq > ?{where} ORDER BY r.rid LIMIT ?

-- name: one_candidate
-- One record, as far as changes need it.
SELECT {columns} FROM record r WHERE r.home=:home AND r.rid = ?

-- name: count_pending
-- How many visible records of a range of row numbers, or of a JSON list of them, have no vectors yet, up to a bound.
SELECT count(*) FROM (SELECT 1 FROM record r WHERE r.home=:home AND NOT r.deleted AND (r.rid > ? AND r.rid < ? OR
r.rid IN (SELECT value::bigint FROM jsonb_array_elements_text(?::jsonb))){where} LIMIT {most}) AS pending

-- name: delete_rows_between
-- Remove the rows of a table between two row numbers.
DELETE FROM {table} WHERE home=:home AND rid > ? AND rid < ?

-- name: delete_rows_of_record
-- Remove the rows of a table that belong to one record.
DELETE FROM {table} WHERE home=:home AND rid = ANY(?::bigint[])

-- name: put_typed_row
-- Store the typed values of records; each list of values comes as the text of an array, because lists of lists have one length.
INSERT INTO typed SELECT :home, rid, ints::bigint[], floats::float8[], words::text[]
FROM unnest(?::bigint[], ?::text[], ?::text[], ?::text[]) AS u(rid, ints, floats, words)
ON CONFLICT (home, rid) DO UPDATE SET ints = excluded.ints, floats = excluded.floats, words = excluded.words

-- name: blob_users
-- The live records that refer to a file.
SELECT u.fid, u.mime_type, r.sid, r.record_id FROM blob_use u JOIN record r ON r.home = u.home AND r.rid = u.rid
WHERE u.home=:home AND u.blob_id = ? AND r.sid IN ({sids}) AND NOT r.deleted{where} ORDER BY r.rid, u.fid

-- name: live_of_shelves
-- How many live records some shelves hold together.
SELECT coalesce(sum(live), 0)::bigint FROM shelf WHERE home=:home AND sid IN ({sids})

-- name: shelf_totals
-- How many live records each shelf holds, when it last changed, and the number of that change.
SELECT sid, live, updated_at, seq FROM shelf WHERE home=:home

-- name: stored_rows
-- Everything of records that a check compares, with their typed values.
SELECT {columns} FROM record r
LEFT JOIN LATERAL (SELECT * FROM typed WHERE home = r.home AND rid = r.rid OFFSET 0) t ON true

-- name: rows_in_index
-- How many rows an index has for a shelf.
SELECT count(*) FROM record WHERE home=:home AND sid=?{condition}

-- name: is_live
-- The record is not deleted.
NOT r.deleted

-- name: rows_of_range
-- The rows from one row number to another.
WHERE r.home=:home AND r.rid >= ? AND r.rid < ? ORDER BY r.rid

-- name: row_of_number
-- One row.
WHERE r.home=:home AND r.rid = ?

-- name: typed_values
-- The values of one typed column of a stream that are there.
SELECT t.rid, {column} FROM shelf h JOIN record r ON r.home = h.home AND r.sid = h.sid AND NOT r.deleted
JOIN typed t ON t.home = r.home AND t.rid = r.rid WHERE h.home=:home AND h.stid=? AND {column} IS NOT NULL

-- name: put_child_keys
-- Note that records hold the keys of others.
INSERT INTO child_key SELECT :home, * FROM unnest(?::int[], ?::int[], ?::bytea[], ?::bigint[]) ON CONFLICT DO NOTHING

-- name: delete_child_keys
-- Forget which keys of others records hold.
DELETE FROM child_key WHERE home=:home AND rid = ANY(?::bigint[])

-- name: with_state
-- The numbers of the catalog and of the state that a statement saw, then whether it found anything, then what it found.
SELECT (SELECT v FROM meta WHERE home=:home AND k='catalog'), (SELECT v FROM meta WHERE home=:home AND k='version'), found.*
FROM (SELECT) AS once LEFT JOIN LATERAL (SELECT true AS is_found, of.* FROM ({statement}) AS of) AS found ON true

-- name: is_in_order
-- The record is in the index of its stream's order.
NOT deleted

-- name: typed_of_shelves
-- The typed values of shelves, each by its first row number and with the records beside them if they are needed.
FROM (VALUES {starts}) AS s CROSS JOIN {table} AS t{records}
WHERE t.home=:home AND t.rid > s.column1 AND t.rid < s.column1 + {size}{where}

-- name: records_of_typed
-- The records beside their typed values.
JOIN LATERAL (SELECT * FROM record WHERE home=:home AND rid = t.rid OFFSET 0) AS r ON true

-- name: records_of_shelves
-- The records of shelves that pass a scope, with their typed values beside them if they are needed.
FROM record AS r{join} WHERE r.home=:home AND r.sid IN ({sids}) AND NOT r.deleted{where}

-- name: aggregate
-- Numbers over visible rows, or over each group of them.
SELECT {select} {rows}{groups}

-- name: exact_sum
-- The sum of integers. As two numbers, of which the first is the high part in other engines: here one number holds any sum.
0, sum({value})

-- name: is_unreadable
-- The row has a value of a field that cannot be read as its type.
{value} IS NULL AND EXISTS (SELECT 1 FROM invalid AS i WHERE i.home=:home AND i.rid = t.rid AND i.fid = {fid})

-- name: page_of_filtered
-- The visible rows that pass filters and have a place, in the stream's order: the typed values say which places the page ends
-- at, and only records up to there are read.
SELECT r.rid, r.sid, r.record_id, r.sort FROM (
  SELECT t.rid AS rid {rows}{from_place} AND {sort} {within} coalesce(
    (SELECT {last}(place) FROM (SELECT {sort} AS place {rows}{behind_place} ORDER BY 1 {direction} LIMIT ?) AS places),
    {no_place})) AS f
JOIN record AS r ON r.home=:home AND r.rid = f.rid WHERE true{start}
ORDER BY r.sort {direction}, r.record_id {direction}, r.sid {direction} LIMIT ?

-- name: exact_value
-- The exact value of a number in a scale, if it has one.
CASE WHEN abs({number}) < {below} THEN
CASE WHEN round({number} * {power}) / {power} = {number} THEN CAST(round({number} * {power}) AS bigint) END END

-- name: fill_exact_values
-- Compute the exact values of a column between two row numbers.
UPDATE {table} AS t SET {target} = {value} WHERE t.home=:home AND t.rid > ? AND t.rid < ?

-- name: inexact_row
-- A row between two row numbers whose number has an exact value only in a finer scale.
SELECT 1 FROM {table} AS t WHERE t.home=:home AND t.rid > ? AND t.rid < ? AND {value} IS NULL AND {finest} IS NOT NULL LIMIT 1

-- name: wrong_exact_rows
-- The rows between two row numbers that hold another exact value than that of their number.
SELECT t.rid FROM {table} AS t WHERE t.home=:home AND t.rid > ? AND t.rid < ? AND {held} IS DISTINCT FROM {value}
