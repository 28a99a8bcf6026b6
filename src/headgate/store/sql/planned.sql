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
-- How many live records each shelf holds, and when it last changed.
SELECT sid, live, updated_at FROM shelf WHERE {home} true

-- name: verified_key
-- The key of a record whose text fields hold some texts.
SELECT r.record_id FROM record r WHERE r.{home} r.rid = ?{conditions}

-- name: column_blocks
-- The stored blocks of one column of a shelf.
SELECT b, data FROM column_block WHERE {home} sid=? AND fid=?

-- name: shelf_heads
-- What columns in memory are compared with.
SELECT sid, seq, next_n, col_seq, (SELECT v FROM meta WHERE {home} k='pruned_seq') FROM shelf
WHERE {home} sid IN ({sids}) ORDER BY sid

-- name: touched_blocks
-- The blocks of a shelf that hold a record which changed after a change number.
SELECT DISTINCT ((rid & {mask}) - 1) / {block_rows} FROM record {index record_seq} WHERE {home} sid=? AND seq > ?

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
