-- name: find_record
-- One live record of a shelf, or of several, by its key.
SELECT {columns} FROM record r
WHERE r.home=:home AND r.sid {shelves} AND r.key = sha256(convert_to(?, 'UTF8')) AND NOT r.deleted{where}

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

-- name: row_in_list
-- The row is one of those in a JSON list of row numbers.
{rid} = ANY(ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(?::jsonb)))

-- name: records_for_window
-- The live records of a key, with some pieces of a long text of each: a row for each piece, or one without a piece.
SELECT {columns}, c.sum, c.text FROM record r
LEFT JOIN chunk c ON c.home = r.home AND c.rid = r.rid AND c.fid = ? AND c.n BETWEEN ? AND ?
WHERE r.home=:home AND r.sid IN ({sids}) AND r.key = sha256(convert_to(?, 'UTF8')) AND NOT r.deleted{where} ORDER BY r.sid, c.n

-- name: count_pending
-- How many visible records of a range of row numbers, or of a JSON list of them, have no vectors yet, up to a bound.
SELECT count(*) FROM (SELECT 1 FROM record r WHERE r.home=:home AND NOT r.deleted AND (r.rid > ? AND r.rid < ? OR
r.rid IN (SELECT value::bigint FROM jsonb_array_elements_text(?::jsonb))){where} LIMIT {most}) AS pending

-- name: delete_rows_of_record
-- Remove the rows of a table that belong to one record.
DELETE FROM {table} WHERE home=:home AND rid = ANY(?::bigint[])

-- name: put_typed_row
-- Store the typed values of records; each list of values comes as the text of an array, because lists of lists have one length.
INSERT INTO typed SELECT :home, rid, ints::bigint[], floats::float8[], words::text[]
FROM unnest(?::bigint[], ?::text[], ?::text[], ?::text[]) AS u(rid, ints, floats, words)
ON CONFLICT (home, rid) DO UPDATE SET ints = excluded.ints, floats = excluded.floats, words = excluded.words

-- name: stored_rows
-- Everything of records that a check compares, with their typed values.
SELECT {columns} FROM record r
LEFT JOIN LATERAL (SELECT * FROM typed WHERE home = r.home AND rid = r.rid OFFSET 0) t ON true

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

-- name: records_of_typed
-- The records beside their typed values.
JOIN LATERAL (SELECT * FROM record WHERE home=:home AND rid = t.rid OFFSET 0) AS r ON true

-- name: exact_sum
-- The sum of integers. As two numbers, of which the first is the high part in other engines: here one number holds any sum.
0, sum({value})

-- name: page_of_filtered
-- The visible rows that pass filters and have a place, in the stream's order: the typed values say which places the page ends
-- at, and only records up to there are read.
SELECT r.rid, r.sid, r.record_id, r.sort FROM (
  SELECT t.rid AS rid {rows}{from_place} AND {sort} {within} coalesce(
    (SELECT {last}(place) FROM (SELECT {sort} AS place {rows}{behind_place} ORDER BY 1 {direction} LIMIT ?) AS places),
    {no_place})) AS f
JOIN record AS r ON r.home=:home AND r.rid = f.rid WHERE true{start}
ORDER BY r.sort {direction}, r.record_id {direction}, r.sid {direction} LIMIT ?
